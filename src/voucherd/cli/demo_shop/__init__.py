"""The demo's shop: invented brands, real prices, codes that open nothing."""
