"""The HTTP server: connections, bounds, processes. It knows no order."""
