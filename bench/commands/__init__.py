"""One module a command; each exposes `command`. Nothing heavy is imported before a command runs."""
