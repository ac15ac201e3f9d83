"""A headless Chromium over its debugging pipe: what a page logs, what it asks the network for, how it looks at a width.

Nothing is needed but the browser's own program; `find` is None where there is none.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
SETTLED = "document.readyState === 'complete'"


def find() -> str | None:
    """The browser's program."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Visit:
    """What came of opening a page at a width; requests that the page's own policy stopped are not among its requests."""

    logged: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    page_width: int = 0
    too_wide: list[str] = field(default_factory=list)
    smallest_text: float = 0.0
    picture: bytes = b""


WIDE = """
[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && !e.closest('thead')
  && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120))
"""
SMALLEST = """
Math.min(...[...document.querySelectorAll('svg.plot text')].map(e => {
  const svg = e.closest('svg');
  return parseFloat(getComputedStyle(e).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
}), ...[...document.querySelectorAll('p, td, th, li, code')].map(e => parseFloat(getComputedStyle(e).fontSize)))
"""


class Browser:
    """One running browser.

    Args:
        write: the end of the pipe that the browser reads commands from.
        read: the end that it answers on.
    """

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer, self._last = b"", 0
        self._events: list[dict[str, Any]] = []

    def visit(self, file: Path, width: int) -> Visit:
        """Open a file at a window's width and look at it."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for name in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{name}.enable", session)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", session, **size)
        self._events.clear()
        self._call("Page.navigate", session, url=file.as_uri())
        while not self._value(session, f"{SETTLED} && location.href !== 'about:blank'"):
            pass
        found = Visit(
            page_width=self._value(session, "document.documentElement.scrollWidth"),
            too_wide=self._value(session, WIDE),
            smallest_text=self._value(session, SMALLEST),
        )
        shot = self._call("Page.captureScreenshot", session, captureBeyondViewport=True)
        found.picture = base64.b64decode(shot["data"])
        self._note(found)
        self._call("Target.closeTarget", targetId=target)
        return found

    def _note(self, found: Visit) -> None:
        blocked = {
            event["params"]["requestId"]
            for event in self._events
            if event["method"] == "Network.loadingFailed"
            and event["params"].get("blockedReason") == "csp"
        }
        for event in self._events:
            params = event["params"]
            if (
                event["method"] == "Network.requestWillBeSent"
                and params["requestId"] not in blocked
            ):
                found.requests.append(params["request"]["url"])
            elif event["method"] in {
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
            }:
                found.logged.append(json.dumps(params)[:300])

    def _value(self, session: str, expression: str) -> Any:
        answer = self._call("Runtime.evaluate", session, expression=expression, returnByValue=True)
        return answer["result"]["value"]

    def _call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                self._events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._read, 1 << 20)
            assert more, "the browser is gone"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile that resolves no name; it ends with the block."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # the browser reads commands from descriptor 3 and answers on 4
    arguments = [
        program,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={profile}",
        "--remote-debugging-pipe",
    ]
    script = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", *arguments],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        process.terminate()
        process.wait()
        os.close(ours_out)
        os.close(ours_in)
