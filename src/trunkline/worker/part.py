"""The base class of every running part of a worker: all start and stop the same way."""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import ClassVar, Final, TypeVar

from trunkline.errors import DatabaseProblem, DatabaseUnreachable, TrunklineError
from trunkline.telemetry import count

__all__ = ["Part", "pause_after_error"]

T = TypeVar("T")

# The shortest and the longest wait while a server does not answer; each error in a row doubles it.
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 3.0
# After an error of another kind: a quick retry would most likely fail the same way.
_OTHER_PAUSE: Final = 10.0


def pause_after_error(error: Exception, errors_in_a_row: int) -> float:
    """Return how long to wait after an error: short if the server is away, so work resumes soon."""
    if isinstance(error, (DatabaseUnreachable, DatabaseProblem)):
        pause: float = min(_FIRST_PAUSE * 2 ** min(errors_in_a_row - 1, 10), _LONGEST_PAUSE)
        return pause * random.uniform(0.7, 1.3)  # noqa: S311 - spreads workers, hides nothing
    return _OTHER_PAUSE


class Part(ABC):
    """A loop in its own task. Starting or stopping it twice, or before it started, is fine."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.log = logging.getLogger(f"trunkline.worker.{self.name}")
        self.stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the loop."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"trunkline {self.name}")

    async def stop(self) -> None:
        """Stop the loop and wait until it has ended."""
        self.stopping.set()
        self.interrupt()
        task = self._task
        if task is not None:
            await asyncio.wait({task})
        await self.close()

    def interrupt(self) -> None:  # noqa: B027 - most parts wait on `stopping` alone
        """Wake the part if it waits for something other than `stopping`."""

    async def close(self) -> None:  # noqa: B027 - not every part has something to close
        """Close the connections of the part."""

    @abstractmethod
    async def turn(self) -> None:
        """Do one round of work, or wait for the next one. Called repeatedly until `stopping`."""

    async def pause(self, seconds: float) -> None:
        """Sleep, or return early when the part is stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            pass

    async def unless_stopping(self, work: Awaitable[T], *, grace: float = 0.0) -> T | None:
        """Await something long. When the part is stopped, abandon it after `grace` seconds."""
        working = asyncio.ensure_future(work)
        ending = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            if grace and not working.done():
                await asyncio.wait({working}, timeout=grace)
            return working.result() if working.done() else None
        finally:
            ending.cancel()
            if not working.done():
                working.cancel()
                await asyncio.wait({working})

    async def _run(self) -> None:
        errors = 0
        while not self.stopping.is_set():
            try:
                await self.turn()
                if errors:
                    self.log.info("%s continues after %s", self.name, count(errors, "error"))
                errors = 0
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - no error may end a part
                errors += 1
                self._log_error(error, errors)
                await self.pause(pause_after_error(error, errors))

    def _log_error(self, error: Exception, errors: int) -> None:
        # Of errors in a row, log number 1, 2, 4, 8 …: an outage of an hour needs few lines.
        if errors & (errors - 1):
            return
        if isinstance(error, TrunklineError):
            self.log.warning("%s: %s (%s)", self.name, error, error.code, extra={"errors": errors})
        else:
            self.log.exception("%s failed", self.name, extra={"errors": errors})
