"""The catalogue: products, prices, price lists, VAT and exchange rates."""
