"""What clients see of the catalogue: products that are for sale, what of them is in stock, and every change."""
