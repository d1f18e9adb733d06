"""What people see in a browser: templates and static files, no code."""
