"""Firefox as Debian ships it, steered through Marionette: messages of JSON with their length in front."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.patience import HANG_S

_NUMBER: Final = re.compile(rb"\d+:")
_LOOK_S: Final = 0.1
_CLICK: Final = """
const wanted = arguments[0];
for (const one of document.querySelectorAll("a, button, summary")) {
  if (one.textContent.replace(/\\s+/g, " ").trim().startsWith(wanted)) { one.click(); return true; }
}
return false;
"""
_FILL: Final = """
const [label, value] = arguments;
for (const one of document.querySelectorAll("label")) {
  if (one.textContent.replace(/\\s+/g, " ").trim().startsWith(label)) {
    const field = document.getElementById(one.htmlFor);
    field.value = value;
    return true;
  }
}
return false;
"""


def firefox() -> str | None:
    """Where Firefox is, if it is here."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Refused(AssertionError):
    """The browser did not do what it was told."""


class Firefox:
    """One window of Firefox."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._count = 0

    async def say(self, command: str, **given: Any) -> Any:
        """Send a command and wait for what comes of it."""
        self._count += 1
        message = json.dumps([0, self._count, command, given]).encode()
        self._writer.write(b"%d:%s" % (len(message), message))
        await self._writer.drain()
        _, number, error, result = await self.hear()
        assert number == self._count
        if error is not None:
            raise Refused(f"{command}: {error}")
        return result.get("value") if isinstance(result, dict) and set(result) == {"value"} else result

    async def hear(self) -> Any:
        """The next message."""
        length = await asyncio.wait_for(self._reader.readuntil(b":"), HANG_S)
        assert _NUMBER.fullmatch(length), length
        return json.loads(await self._reader.readexactly(int(length[:-1])))

    async def goto(self, address: str) -> None:
        """Open a page."""
        await self.say("WebDriver:Navigate", url=address)

    async def run(self, script: str, *given: Any) -> Any:
        """What a script on the page returns."""
        return await self.say("WebDriver:ExecuteScript", script=script, args=list(given))

    async def run_async(self, script: str, *given: Any) -> Any:
        """What a script on the page hands to its last argument."""
        return await self.say("WebDriver:ExecuteAsyncScript", script=script, args=list(given))

    async def click(self, words: str) -> None:
        """Click on the first link or button that begins with these words, as soon as it is there."""
        await self._until(_CLICK, words)

    async def fill(self, label: str, value: str) -> None:
        """Write into the field of this label, as soon as it is there."""
        await self._until(_FILL, label, value)

    async def see(self, words: str) -> None:
        """Wait until the page says this."""
        await self._until("return document.body.innerText.includes(arguments[0]);", words)

    async def resize(self, width: int, height: int) -> None:
        """Make the window so large."""
        await self.say("WebDriver:SetWindowRect", x=0, y=0, width=width, height=height)

    async def _until(self, script: str, *given: Any) -> None:
        for _ in range(int(HANG_S / _LOOK_S)):
            # A page that is just about to be left or to come runs no script.
            with suppress(Refused):
                if await self.run(script, *given):
                    return
            await asyncio.sleep(_LOOK_S)
        shown = await self.run("return location.href + '\\n' + document.body.innerText;")
        raise AssertionError(f"{given} is not on the page: {shown}")


@asynccontextmanager
async def opened(program: str, profile: Path) -> AsyncIterator[Firefox]:
    """A window of its own, which ends with this block."""
    (profile / "user.js").write_text(
        'user_pref("marionette.port", 0);\nuser_pref("browser.shell.checkDefaultBrowser", false);\n'
        'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
        'user_pref("app.update.enabled", false);\nuser_pref("network.captive-portal-service.enabled", false);\n'
        'user_pref("network.connectivity-service.enabled", false);\n'
    )
    process = await asyncio.create_subprocess_exec(
        *(program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={"HOME": str(profile), "PATH": "/usr/bin:/bin", "MOZ_HEADLESS": "1"},
    )
    try:
        port = await _port(profile / "MarionetteActivePort")
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 * 1024 * 1024)
        window = Firefox(reader, writer)
        await window.hear()
        await window.say("WebDriver:NewSession", capabilities={})
        yield window
        writer.close()
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), HANG_S)


async def _port(file: Path) -> int:
    for _ in range(int(HANG_S / _LOOK_S)):
        with suppress(FileNotFoundError):
            found = await asyncio.to_thread(file.read_text)
            if found.strip():
                return int(found)
        await asyncio.sleep(_LOOK_S)
    raise AssertionError("Firefox did not start")
