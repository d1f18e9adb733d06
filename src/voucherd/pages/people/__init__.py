"""Pages about people: forgotten passwords, invitations, one's own account, the team, and what takes two."""
