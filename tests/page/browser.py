"""Headless Chromium of the system, controlled through a pipe: no download, no open port."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--mute-audio", "--force-color-profile=srgb", "--lang=en-US",
)  # fmt: skip
_FOLDERS = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
"""Folders that a browser writes to by itself, such as the settings of the desktop."""
_KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowUp": 38, "ArrowDown": 40, "Home": 36, "End": 35, "Enter": 13,
         "Escape": 27, "Tab": 9, " ": 32}  # fmt: skip


def chromium() -> str | None:
    """Return the path of Chromium; None without it."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class BrowserError(Exception):
    """The browser refused a command, or a script in the page failed."""


class Browser:
    """One browser with one page at a time."""

    def __init__(self, program: str, folder: Path) -> None:
        flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        reference, self._out = _pipe()
        self._in, answers = _pipe()
        log = os.open(folder / "browser.log", os.O_CREAT | os.O_WRONLY)
        places = [(os.POSIX_SPAWN_DUP2, fd, place) for fd, place in ((log, 1), (log, 2), (reference, 3), (answers, 4))]
        home = dict.fromkeys(_FOLDERS, str(folder))
        self._process = os.posix_spawn(program, [program, *flags, "about:blank"], {**os.environ, **home},
                                       file_actions=places, setpgroup=0)  # fmt: skip
        for fd in (reference, answers, log):
            os.close(fd)
        self._last, self._buffer = 0, b""
        self._session = ""
        self.events: list[dict[str, Any]] = []
        """What the page has done since it was opened: requests, messages to the console, errors."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End it, and everything it has started."""
        self._session = ""
        try:
            self.send("Browser.close")
        except (BrowserError, OSError):
            os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        for fd in (self._in, self._out):
            os.close(fd)

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        """Do a command of the protocol. Raises BrowserError."""
        self._last += 1
        wanted = self._last
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": wanted, "method": method, "params": parameters, **session}
        _write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            got = os.read(self._in, 1 << 20)
            if not got:
                raise BrowserError("the browser has gone")
            self._buffer += got
        line, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    # What a reader does

    def open(self, path: Path, width: int = 1280, height: int = 900, scale: float = 1.0, dark: bool = False) -> None:
        """Show a file in a window of that size, once it is loaded and drawn."""
        screen = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **screen)
        self.dark(dark)
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        self.painted()

    def dark(self, on: bool) -> None:
        """Set the colour scheme that the desktop prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def painted(self) -> None:
        """Wait until everything requested so far is painted."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page. Raises BrowserError when it throws."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the text of the first matching element."""
        found: str = self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")
        return found

    def texts(self, selector: str) -> list[str]:
        """Return the text of each matching element."""
        found: list[str] = self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"
        )
        return found

    def click(self, selector: str, number: int = 0) -> None:
        """Press the mouse on the middle of an element's first line, scrolled into sight."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{number}];"
            "e.scrollIntoView({block: 'center', inline: 'center'}); const r = e.getClientRects()[0];"
            "return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.painted()

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a list by its value."""
        select = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{select}.value = {json.dumps(value)}; {select}.dispatchEvent(new Event('change'))")
        self.painted()

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            code = _KEYS[key]
            reported = {"text": {"Enter": "\r", " ": " "}[key]} if key in ("Enter", " ") else {}
            shared = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type="keyDown", **shared, **reported)
            self.send("Input.dispatchKeyEvent", type="keyUp", **shared)
        self.painted()

    def names(self, role: str) -> Sequence[str]:
        """Return the accessible names of everything with that role."""
        tree = self.send("Accessibility.getFullAXTree")["nodes"]
        return [node.get("name", {}).get("value", "") for node in tree
                if not node.get("ignored") and node.get("role", {}).get("value") == role]  # fmt: skip

    def picture(self, path: Path, whole: bool = False) -> None:
        """Save what is seen, or the whole page."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    @property
    def requests(self) -> list[str]:
        """Return the addresses that the page has requested, including its own."""
        sent = (event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [request["request"]["url"] for request in sent]

    @property
    def errors(self) -> list[str]:
        """Errors and warnings of the page, refusals of its policy included."""
        reported = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in reported]


def _pipe() -> tuple[int, int]:
    """Return a pipe (read end, write end) whose descriptors do not collide with the browser's."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
