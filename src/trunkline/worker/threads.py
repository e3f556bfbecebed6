"""Threads for handlers that are plain functions.

Not concurrent.futures: its threads are joined when the interpreter ends, and a handler that hangs
would keep a worker from ever stopping.
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
    """As many threads as are needed at once, up to a limit, plus those that were given up."""

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()
        self._all = 0

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run in a thread. If the waiting task is cancelled the thread is left behind."""
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
        """Let idle threads end; the others end when their handler does."""
        for _ in range(self._all):
            self._queue.put(None)

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            function, future = work
            settle: Callable[[Any], None] = future.set_result
            try:
                answer = function()
            except BaseException as error:  # noqa: BLE001 - it is the answer of the handler
                settle, answer = future.set_exception, _storable(error)
            # First free, then told: who hears of it finds this thread and needs no new one.
            with self._lock:
                self._idle += 1
            self._tell(future, settle, answer)
            del work, function, future, settle, answer

    @staticmethod
    def _tell(future: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
        def tell() -> None:
            if not future.done():
                settle(value)

        try:
            future.get_loop().call_soon_threadsafe(tell)
        except RuntimeError:
            # The loop has ended: the handler outlived its worker. Its lease brings the job back.
            return


def _storable(error: BaseException) -> BaseException:
    if isinstance(error, (StopIteration, GeneratorExit)):
        # They would end the coroutine that awaits the future, and a runner with it.
        return RuntimeError(f"handler raised {error!r}")
    return error
