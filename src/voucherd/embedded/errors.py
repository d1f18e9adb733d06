"""What the operator is told, in one line, when the embedded database cannot do what was asked."""


class EmbeddedError(Exception):
    """One clear line about the embedded database, ready to be shown to the operator."""


class AlreadyRunning(EmbeddedError):
    """Another process owns the data folder."""
