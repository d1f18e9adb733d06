"""The operator's console: one file for each subject."""
