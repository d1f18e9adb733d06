"""People: roles, passwords, second factors, sessions, invitations."""
