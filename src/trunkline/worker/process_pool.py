"""Processes for handlers with process=True: killed at the hard limit, replaced when they die."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import select
import socket
import sys
from typing import Any, Final

from trunkline.client import Task
from trunkline.db.calls import work
from trunkline.errors import HandlerProcessDied, InvalidTask, StaleAttempt, StoreError
from trunkline.telemetry import chosen_logging
from trunkline.worker.backends import Services
from trunkline.worker.frames import (
    Emit,
    Ended,
    Hello,
    Inputs,
    Progress,
    Run,
    Verdict,
    pack,
    receive_async,
)
from trunkline.worker.report import End, Report
from trunkline.worker.roster import HeldJob, Stop

__all__ = ["ProcessPool"]

# How long a handler may take to end after a request to stop, before its process is killed.
_POLITE: Final = 5.0
# How long to wait for messages of a process that has ended: they may arrive after its end.
_LAST_WORDS: Final = 0.5

_log = logging.getLogger("trunkline.worker.processes")


class ProcessPool:
    """One process for each running handler. Idle processes are kept for the next job."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()

    async def run(
        self, held: HeldJob, task: Task[..., Any], inputs: Inputs | None = None
    ) -> Report:
        """Run the handler of a job in a process and return how it ended."""
        place = _importable(task)
        given = inputs or Inputs(held.job.payload)
        order = Run(*place, self._services.worker, held.job, given, held.start_before)
        child = await self._take()
        try:
            ended = await self._converse(child, held, order)
            if ended is None:
                code = await child.process.wait()
                raise HandlerProcessDied(
                    f"The process of {task.name} ended with {_exit_text(code)}"
                )
        except BaseException:
            # Cancelled, at the hard limit, or an unknown error: the process must not continue.
            await self._end(child, politely=held.stop in {Stop.CANCELLED, Stop.SHUTDOWN})
            raise
        held.ended_in_transaction = ended.in_transaction
        if ended.leaving:
            await self._end(child, politely=False)
        else:
            self._idle.append(child)
        return _report(held, ended)

    async def close(self) -> None:
        """Kill all processes."""
        await asyncio.gather(*(self._end(child, politely=False) for child in list(self._all)))

    async def _take(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.process.returncode is None and not child.has_hung_up():
                return child
            await self._end(child, politely=False)
        child = await _Child.spawn(self._services.dsn, self._packed_store())
        self._all.add(child)
        return child

    def _packed_store(self) -> bytes | None:
        store = self._services.store
        if store is None:
            return None
        try:
            return pickle.dumps(store.store)
        except StoreError as error:
            # Handlers without artifacts must run all the same.
            _log.warning("the store cannot be opened: %s (%s)", error, error.code)
            return None

    async def _converse(self, child: _Child, held: HeldJob, order: Run) -> Ended | None:
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
                case Emit(text, flush):
                    self._services.emitter.output(job).add(text)
                    if flush:
                        await self._services.emitter.flush(job)
                        child.send(Verdict("ok"))
                case _:
                    raise HandlerProcessDied(f"The process of {job.task} sent {message!r}")
        return None

    async def _end(self, child: _Child, *, politely: bool) -> None:
        try:
            if politely:
                with contextlib.suppress(ProcessLookupError, TimeoutError):
                    child.process.terminate()
                    async with asyncio.timeout(_POLITE):
                        await child.process.wait()
        finally:
            # Also if the wait is interrupted: nothing else would end the process.
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
        # One waiter for the whole life of the process: the transport never drops one.
        self._gone = asyncio.ensure_future(process.wait())

    @classmethod
    async def spawn(cls, dsn: str, store: bytes | None) -> _Child:
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "trunkline.worker.process_child",
                str(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                # uvloop accepts only a plain dict.
                env=dict(os.environ),
                # A terminal sends Ctrl-C to the whole group. The worker stops its children itself.
                start_new_session=True,
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        child = cls(process, reader, writer)
        child.send(Hello(sys.path, dsn, chosen_logging(), store))
        return child

    def has_hung_up(self) -> bool:
        """Whether the process has ended, even if the loop does not know yet.

        An idle process sends nothing, so readable data means that the connection was closed.
        """
        if self.reader.at_eof():
            return True
        poll = select.poll()
        poll.register(self.writer.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def send(self, message: Any) -> None:
        self.writer.write(pack(message))

    async def receive(self) -> Any:
        """Return the next message, or None when the process is gone.

        Waiting for the end of the stream is not enough: a process that the handler forked keeps the
        socket open.
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
            hint="Put it at the top level of a module other than the script itself.",
        )
    return module, name


def _report(held: HeldJob, ended: Ended) -> Report:
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


def _exit_text(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
