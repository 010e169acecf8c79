"""What a result becomes: page, charts, CSV, screen, folder. Each is a function of the result alone."""
