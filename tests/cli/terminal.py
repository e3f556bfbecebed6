"""The command line in a terminal: a pseudo-terminal with a screen that can be read."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

from tests.support.waiting import DEADLINE

__all__ = ["PROGRAM", "Terminal"]

PROGRAM = (sys.executable, "-c", "from trunkline.cli.main import main; main()")


class Terminal:
    """A process whose standard streams are a terminal of the given size."""

    def __init__(
        self,
        *arguments: str,
        dsn: str | None = None,
        home: Path | None = None,
        columns: int = 100,
        lines: int = 30,
    ) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._master, slave = pty.openpty()
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TRUNKLINE_") and name not in {"NO_COLOR", "COLUMNS", "LINES"}
        }
        environment |= {"TERM": "xterm-256color", "TZ": "UTC"}
        if dsn is not None:
            environment["TRUNKLINE_DSN"] = dsn
        if home is not None:
            environment["TRUNKLINE_HOME"] = str(home)
        self.process = subprocess.Popen(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            # Its own session, with this terminal: then Ctrl-C becomes a signal.
            preexec_fn=_take_terminal,  # noqa: PLW1509 - nothing else runs in the child
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """What the screen shows now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.type("\x03")

    def until(self, *texts: str) -> str:
        """Wait until all of these are on the screen at once, and return it."""
        end = time.monotonic() + DEADLINE
        while not all(text in self.text for text in texts):
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"not on the screen: {texts}\n{self.text}")
        return self.text

    def end(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        end = time.monotonic() + DEADLINE
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(timeout=max(0.1, end - time.monotonic()))

    def answer(self, text: str) -> int:
        """Type the answer to a last question, again if it was thrown away; return the exit code."""
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < end:
            self.type(f"{text}\n")
            pause = time.monotonic() + 10.0
            while self.process.poll() is None and time.monotonic() < pause:
                self._read(0.05)
        return self.end()

    def end_at_a_question(self) -> int:
        """Press Ctrl-C at a prompt, again if need be, and return the exit code.

        What is typed while the prompt changes the mode of the terminal is thrown away.
        """
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < end:
            self.interrupt()
            pause = time.monotonic() + 1.0
            while self.process.poll() is None and self._read(pause - time.monotonic()):
                pass
        return self.end()

    def _read(self, patience: float) -> bool:
        """Read some; False at the end, and when nothing came."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, patience))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            # Linux says so when the last process has closed the other side.
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)


def _take_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
