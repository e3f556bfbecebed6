"""A browser behind two pipes: commands of the DevTools protocol, with a deadline for each."""

from __future__ import annotations

import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from trunkline_profiles.exports.handlers import launch
from trunkline_profiles.exports.handlers.memory import children_of, private_bytes
from trunkline_profiles.exports.handlers.problems import (
    RenderFailed,
    RenderStopped,
    RenderTimeout,
    RenderTooLarge,
)

__all__ = ["FLAGS", "Browser"]

_LAUNCH: Final = Path(launch.__file__)
# Nothing listens there: what escapes all other rules reaches a closed port.
_NOWHERE: Final = "http://127.0.0.1:9"
FLAGS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    f"--proxy-server={_NOWHERE}",
    "--proxy-bypass-list=<-loopback>",
)
# Seconds between two looks at memory and cancellation.
_TICK: Final = 0.1
# A message of the browser beyond this is no page of a résumé.
_LONGEST: Final = 64 << 20


class Browser:
    """One process of Chromium with its children; it ends when something goes wrong."""

    def __init__(self, program: str, *, memory: int, flags: Sequence[str] = FLAGS) -> None:
        self._memory = memory
        self._folder = tempfile.mkdtemp(prefix="trunkline-browser-")
        self._next = 0
        self._read = b""
        self._events: list[dict[str, Any]] = []
        self.blocked: list[str] = []
        # How often the document of each session has been loaded.
        self._loads: Counter[str] = Counter()
        user = _unprivileged()
        home = Path(self._folder) / "home"
        home.mkdir()
        if user is not None:
            Path(self._folder).chmod(0o711)
            os.chown(home, *user)
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        pipes = (str(to_browser), str(from_browser))
        identity = [str(one) for one in user or (0, 0)]
        arguments = [program, *flags, f"--user-data-dir={home}", "about:blank"]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_LAUNCH), *pipes, *identity, *arguments],
                pass_fds=(to_browser, from_browser),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # No variable of the worker: they hold the addresses and keys of its services.
                env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(to_browser)
            os.close(from_browser)

    @property
    def pid(self) -> int:
        """The first process of the browser."""
        return self._process.pid

    def call(
        self,
        method: str,
        deadline: float,
        stopped: Callable[[], bool],
        session: str | None = None,
        **parameters: Any,
    ) -> dict[str, Any]:
        """Send a command and return its result; requests of pages are blocked meanwhile."""
        number = self._send(method, session, parameters)
        while True:
            message = self._next_message(deadline, stopped)
            if message.get("id") == number:
                if "error" in message:
                    raise RenderFailed(f"{method} failed: {message['error'].get('message', '')}")
                found: dict[str, Any] = message["result"]
                return found

    def wait_for_load(
        self, times: int, session: str, deadline: float, stopped: Callable[[], bool]
    ) -> None:
        """Wait until the main document of a session has been loaded this often."""
        while self._loads[session] < times:
            self._next_message(deadline, stopped)

    def loads(self, session: str) -> int:
        """How often the main document of a session has been loaded."""
        return self._loads[session]

    def close(self) -> None:
        """End all processes of the browser and remove its files."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for descriptor in (self._commands, self._answers):
            with suppress(OSError):
                os.close(descriptor)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _next_message(self, deadline: float, stopped: Callable[[], bool]) -> dict[str, Any]:
        """Return the next message; requests of pages are blocked, and loads counted."""
        message = self._receive(deadline, stopped)
        if message.get("method") == "Fetch.requestPaused":
            self._block(message)
        elif message.get("method") == "Page.loadEventFired":
            self._loads[message.get("sessionId", "")] += 1
        return message

    def _block(self, message: dict[str, Any]) -> None:
        request = message["params"]
        self.blocked.append(request["request"]["url"][:200])
        self._send(
            "Fetch.failRequest",
            message.get("sessionId"),
            {"requestId": request["requestId"], "errorReason": "BlockedByClient"},
        )

    def _send(self, method: str, session: str | None, parameters: dict[str, Any]) -> int:
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        content = json.dumps(message).encode() + b"\0"
        try:
            while content:
                content = content[os.write(self._commands, content) :]
        except OSError as error:
            raise RenderFailed("the browser has ended") from error
        return self._next

    def _receive(self, deadline: float, stopped: Callable[[], bool]) -> dict[str, Any]:
        while b"\0" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0:
                raise RenderTimeout("the renderer took too long")
            if stopped():
                raise RenderStopped
            if select.select([self._answers], [], [], min(_TICK, left))[0]:
                part = os.read(self._answers, 1 << 20)
                if not part:
                    raise RenderFailed("the browser has ended")
                self._read += part
                if len(self._read) > _LONGEST:
                    raise RenderTooLarge("the pages are too large")
            else:
                self._check_memory()
        line, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _check_memory(self) -> None:
        used = sum(private_bytes(one) for one in children_of(self.pid))
        if used > self._memory:
            raise RenderTooLarge(f"the browser uses {used >> 20} MiB")


def _unprivileged() -> tuple[int, int] | None:
    """The user that the browser runs as where we are root: its sandbox refuses root."""
    if os.getuid() != 0:
        return None
    found = pwd.getpwnam("nobody")
    return found.pw_uid, found.pw_gid
