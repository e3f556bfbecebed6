"""Threads for handlers that are plain functions.

The standard library's concurrent.futures joins its threads when the interpreter ends, so a handler
that hangs would keep the worker from stopping.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

__all__ = ["Threads"]

_Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Threads:
    """As many threads as are needed at once, up to a limit, plus abandoned ones."""

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()
        self._all = 0

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function in a thread. If the caller is cancelled, the thread is abandoned."""
        context = contextvars.copy_context()
        async with self._slots:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[Any] = loop.create_future()
            with self._lock:
                if not self._idle:
                    self._all += 1
                    threading.Thread(
                        target=self._work, name=f"trunkline handler {self._all}", daemon=True
                    ).start()
                else:
                    self._idle -= 1
            self._queue.put((lambda: context.run(function, *args), future))
            return await future

    def close(self) -> None:
        """End idle threads now, and the others when their handlers end."""
        for _ in range(self._all):
            self._queue.put(None)

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            function, future = work
            settle: Callable[[Any], None] = future.set_result
            try:
                outcome = function()
            except BaseException as error:  # noqa: BLE001 - passed on to the caller
                settle, outcome = future.set_exception, _storable(error)
            # Count this thread as idle before the caller continues, so that it can reuse it.
            with self._lock:
                self._idle += 1
            self._settle(future, settle, outcome)
            del work, function, future, settle, outcome

    @staticmethod
    def _settle(future: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
        def settle_if_pending() -> None:
            if not future.done():
                settle(value)

        try:
            future.get_loop().call_soon_threadsafe(settle_if_pending)
        except RuntimeError:
            # The loop has ended before the handler. The job returns when its lease expires.
            return


def _storable(error: BaseException) -> BaseException:
    if isinstance(error, (StopIteration, GeneratorExit)):
        # As they are, they would end the coroutine that awaits the future, and its runner.
        return RuntimeError(f"handler raised {error!r}")
    return error
