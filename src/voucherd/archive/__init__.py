"""The archive: orders of closed months, in files of Parquet beside the database.

`archive.deeds` writes a month to files, reads them back, and then takes the orders out of the tables. `archive.reader`
finds an order in the files. Codes stay in the vault, sealed: the files name the lot and the place of each, no more.
"""
