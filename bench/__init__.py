"""The `pipebench` command: runs, results and reports."""
