"""The wire: what each version of the API sends, byte for byte."""
