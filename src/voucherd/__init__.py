"""voucherd: the order service for prepaid codes."""
