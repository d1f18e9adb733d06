"""Recipients: redemption links, their PINs, and the vouchers behind them."""
