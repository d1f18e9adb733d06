"""The buyer's portal: one file for each subject."""
