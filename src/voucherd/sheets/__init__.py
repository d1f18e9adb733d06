"""Tables that people keep in files: CSV and XLSX, read with distrust and written plainly."""
