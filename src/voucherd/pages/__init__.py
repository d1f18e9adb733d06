"""Pages for people: the buyer's portal, the operator's console, and the recipient's page."""
