"""Reports: sales, margin, VAT and stock. Reads only.

What each word means is written down in the operator's guide. Every figure is a sum of whole minor units, and what is
rounded is rounded once for each code, so rows add up to totals however they are grouped.
"""
