"""The page behind a redemption link."""
