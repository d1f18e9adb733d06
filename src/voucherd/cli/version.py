"""`voucherd version`: which version this is."""

from __future__ import annotations

from importlib.metadata import version as installed_version

from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output

app = noun()


@command(app, "version")
async def version(_context: CommandContext) -> Output:
    """Say which version this is."""
    number = installed_version("voucherd")
    return Output({"version": number}, f"voucherd {number}")
