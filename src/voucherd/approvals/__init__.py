"""Approvals: what one person asks for and another one allows (OP-93)."""
