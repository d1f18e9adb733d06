"""The HTTP API: routes, handlers, errors, and the wire shapes of each version."""
