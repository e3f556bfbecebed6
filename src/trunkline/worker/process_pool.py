"""Processes for handlers with process=True: killed at their limit, replaced when they die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import sys
from typing import Any, Final

from trunkline.client import Task
from trunkline.db.calls import work
from trunkline.errors import HandlerProcessDied, InvalidTask, StaleAttempt
from trunkline.telemetry import chosen_logging
from trunkline.worker.backends import Services
from trunkline.worker.frames import Ended, Hello, Progress, Run, Verdict, pack, receive_async
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Held, Stop

__all__ = ["ProcessPool"]

# After a request to stop, how long a handler may take to end before its process is killed.
_POLITE: Final = 5.0
# What a process said before its end may arrive after it.
_LAST_WORDS: Final = 0.5


class ProcessPool:
    """One process for each handler that runs, kept for the next one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()

    async def run(self, held: Held, task: Task[..., Any]) -> Report:
        """Run the handler of a job in a process and return how it ended."""
        order = Run(*_importable(task), self._services.worker, held.job, held.start_before)
        child = await self._take()
        try:
            ended = await self._converse(child, held, order)
            if ended is None:
                code = await child.process.wait()
                raise HandlerProcessDied(f"The process of {task.name} ended with {_said(code)}")
        except BaseException:
            # Cancelled, at its limit, or something unknown: what the process does is over.
            await self._end(child, politely=held.stop in {Stop.CANCELLED, Stop.SHUTDOWN})
            raise
        held.ended_in_transaction = ended.in_transaction
        if ended.leaving:
            await self._end(child, politely=False)
        else:
            self._idle.append(child)
        return _report(held, ended)

    async def close(self) -> None:
        """Kill what is left."""
        await asyncio.gather(*(self._end(child, politely=False) for child in list(self._all)))

    async def _take(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.process.returncode is None and not child.has_hung_up():
                return child
            await self._end(child, politely=False)
        child = await _Child.spawn(self._services.dsn)
        self._all.add(child)
        return child

    async def _converse(self, child: _Child, held: Held, order: Run) -> Ended | None:
        job = held.job
        child.send(order)
        while (message := await child.receive()) is not None:
            match message:
                case Ended():
                    return message
                case Progress(percent, text, phase):
                    call = work.progress(
                        self._services.worker,
                        job.job_id,
                        job.attempt,
                        percent=percent,
                        message=text,
                        phase=phase,
                    )
                    child.send(Verdict(await self._services.pool.run(call)))
                case _:
                    raise HandlerProcessDied(f"The process of {job.task} said {message!r}")
        return None

    async def _end(self, child: _Child, *, politely: bool) -> None:
        try:
            if politely:
                with contextlib.suppress(ProcessLookupError, TimeoutError):
                    child.process.terminate()
                    async with asyncio.timeout(_POLITE):
                        await child.process.wait()
        finally:
            # Also when this is interrupted: nobody else would end the process.
            with contextlib.suppress(ProcessLookupError):
                child.process.kill()
            child.writer.close()
        await child.process.wait()
        self._all.discard(child)


class _Child:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.process = process
        self.reader = reader
        self.writer = writer
        # One for its whole life: the transport keeps every waiter it ever had.
        self._gone = asyncio.ensure_future(process.wait())

    @classmethod
    async def spawn(cls, dsn: str) -> _Child:
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "trunkline.worker.process_child",
                str(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                # A plain dict: uvloop takes nothing else.
                env=dict(os.environ),
                # Ctrl-C in a terminal goes to the whole group; the worker decides for its children.
                start_new_session=True,
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        child = cls(process, reader, writer)
        child.send(Hello(sys.path, dsn, chosen_logging()))
        return child

    def has_hung_up(self) -> bool:
        """Whether it died, before the loop hears of it: an idle process says only its end."""
        if self.reader.at_eof():
            return True
        poll = select.poll()
        poll.register(self.writer.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def send(self, message: Any) -> None:
        self.writer.write(pack(message))

    async def receive(self) -> Any:
        """The next message; None when the process is gone.

        Its end is not always the end of its messages: a process that the handler forked has the
        socket too.
        """
        receiving = asyncio.ensure_future(receive_async(self.reader))
        try:
            await asyncio.wait({receiving, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                await asyncio.wait({receiving}, timeout=_LAST_WORDS)
            return receiving.result() if receiving.done() else None
        finally:
            receiving.cancel()


def _importable(task: Task[..., Any]) -> tuple[str, str]:
    module, name = task.handler.__module__, task.handler.__qualname__
    if module == "__main__" or "<" in name:
        raise InvalidTask(
            f"The handler of {task.name} cannot be imported by another process",
            hint="Put it at the top level of a module of its own, not of the script itself.",
        )
    return module, name


def _report(held: Held, ended: Ended) -> Report:
    if ended.end is None:
        raise StaleAttempt("the attempt is no longer yours")
    return Report(
        held.job,
        End(ended.end),
        result=ended.result,
        error=ended.error,
        retryable=ended.retryable,
        delay=ended.delay,
        reason=ended.reason,
    )


def _said(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
