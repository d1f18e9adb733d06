"""The catalogue: what is for sale, at what price, and what VAT and exchange rates apply."""
