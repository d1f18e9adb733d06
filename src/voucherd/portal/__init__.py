"""What people see in a browser: the buyer's portal, the operator's console, and the pages of recipients."""
