"""`voucherd version`: which version this is."""

from __future__ import annotations

from importlib.metadata import version as installed_version

from voucherd.cli.answers import Answer
from voucherd.cli.frame import command, noun
from voucherd.cli.office import Office

app = noun()


@command(app, "version")
async def version(_office: Office) -> Answer:
    """Say which version this is."""
    number = installed_version("voucherd")
    return Answer({"version": number}, f"voucherd {number}")
