"""The vault: codes enter once, sealed, in lots; selling moves a lot's cursor and touches no code."""
