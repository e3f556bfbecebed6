"""The base of every running part of a worker: started and stopped the same way."""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import ClassVar, Final, TypeVar

from trunkline.errors import DatabaseProblem, DatabaseUnreachable, TrunklineError

__all__ = ["Part", "pause_after_error"]

T = TypeVar("T")

# Waits after the first, second … error in a row of a server that does not answer.
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 3.0
# After an error of another kind: a quick retry would most likely fail the same way.
_OTHER_PAUSE: Final = 10.0


def pause_after_error(error: Exception, errors_in_a_row: int) -> float:
    """How long to wait before going on; an absent server is asked often, so that work resumes."""
    if isinstance(error, (DatabaseUnreachable, DatabaseProblem)):
        pause: float = min(_FIRST_PAUSE * 2 ** min(errors_in_a_row - 1, 10), _LONGEST_PAUSE)
        return pause * random.uniform(0.7, 1.3)  # noqa: S311 - spreads workers, hides nothing
    return _OTHER_PAUSE


class Part(ABC):
    """A loop in a task of its own. Starting or stopping twice, or stopping unstarted, is fine."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.log = logging.getLogger(f"trunkline.worker.{self.name}")
        self.stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"trunkline {self.name}")

    async def stop(self) -> None:
        """Ask the part to end and wait until it has."""
        self.stopping.set()
        self.interrupt()
        task = self._task
        if task is not None:
            await asyncio.wait({task})
        await self.close()

    def interrupt(self) -> None:  # noqa: B027 - most parts wait on `stopping` alone
        """Wake the part if it waits for something else than `stopping`."""

    async def close(self) -> None:  # noqa: B027 - not every part holds something
        """Give back what the part holds."""

    @abstractmethod
    async def turn(self) -> None:
        """Do one round of work, or wait for the next; called again and again until `stopping`."""

    async def pause(self, seconds: float) -> None:
        """Wait, or until the part is to stop."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            pass

    async def unless_stopping(self, work: Awaitable[T], *, grace: float = 0.0) -> T | None:
        """Await something long, and drop it when the part is to stop, or so many seconds later."""
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
                    self.log.info("%s goes on after %d errors", self.name, errors)
                errors = 0
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - a part never dies of an error
                errors += 1
                self._tell(error, errors)
                await self.pause(pause_after_error(error, errors))

    def _tell(self, error: Exception, errors: int) -> None:
        # The first and then ever fewer of a row: a server that is away for an hour is one story.
        if errors & (errors - 1):
            return
        if isinstance(error, TrunklineError):
            self.log.warning("%s: %s (%s)", self.name, error, error.code, extra={"errors": errors})
        else:
            self.log.exception("%s failed", self.name, extra={"errors": errors})
