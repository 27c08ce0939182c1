"""A real browser without a screen: Chromium over its debugging pipe, with nothing but the standard library."""

import fcntl
import json
import os
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import needs

PATIENCE = 120.0
"""Seconds to wait for an answer: a loaded machine is slow, not wrong."""


class Browser:
    """One page in Chromium. `problems` and `requests` tell what went wrong and what it asked the network for."""

    def __init__(self, folder: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        executable = needs.find_chromium()
        assert executable is not None
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._count, self._buffer = 0, b""
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4; ours are moved out of the way.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        command = f'exec "$0" "$@" 3<&{high[0]} 4>&{high[1]} {high[0]}<&- {high[1]}>&-'
        words = [executable, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        words += [f"--user-data-dir={folder}", "--no-first-run", "--disable-background-networking", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, *words],
            pass_fds=high,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out, *high):
            os.close(end)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(width, height)
        self.colours(dark)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._to)
        os.close(self._from)

    def resize(self, width: int, height: int) -> None:
        """Make the page so large, in CSS pixels."""
        mobile = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def colours(self, dark: bool) -> None:
        """What the reader prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def click(self, x: float, y: float) -> None:
        """Press and release the mouse there."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def send(self, method: str, **params: Any) -> Any:
        """A command for the page."""
        return self.call(method, self._session, **params)

    def call(self, method: str, session: str = "", **params: Any) -> Any:
        """A command, and its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = self._next(deadline)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
        raise TimeoutError(method)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(deadline - time.monotonic(), 0.0))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has gone"
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.eval("window.old = true")
        self.send("Page.navigate", url=path.absolute().as_uri())
        self.until("document.readyState === 'complete' && !window.old")

    def eval(self, code: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, code: str) -> None:
        """Wait for an expression to become true."""
        deadline = time.monotonic() + PATIENCE
        while not self.eval(code):
            assert time.monotonic() < deadline, f"never true: {code}"
            time.sleep(0.05)

    def scroll_through(self) -> None:
        """Bring every part of the page to the screen once."""
        for part in range(self.eval("Math.ceil(document.documentElement.scrollHeight / innerHeight)")):
            self.eval(f"scrollTo({{top: {part} * innerHeight, behavior: 'instant'}})")
            self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.eval("scrollTo({top: 0, behavior: 'instant'})")
