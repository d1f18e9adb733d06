"""E-mail addresses: the one place that reads them. Pure."""

from __future__ import annotations

from email_validator import EmailNotValidError, validate_email


def read(text: str) -> str:
    """One address in lower case, as it is stored and mailed; refused if it is none, several, or more than one."""
    address = text.strip()
    try:
        found = validate_email(address, check_deliverability=False, allow_smtputf8=False, strict=True)
    except EmailNotValidError:
        found = None
    # A program that is handed such a name takes it for an option.
    if found is None or found.ascii_email is None or found.local_part.startswith("-"):
        raise ValueError(f"{address!r} is not an e-mail address")
    return found.ascii_email.lower()


def looked_up(text: str) -> str:
    """The address under which somebody would be stored; what can't be read is looked for as it is, and not found."""
    try:
        return read(text)
    except ValueError:
        return text.strip().lower()
