"""Follows jobs and workflows: one listening connection and batched reads for all followers.

A follower holds no connection and no rows. A notification only marks it as changed; it reads when
it is ready, from the offset that it has reached. So a slow follower costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Literal, Protocol, TypeVar
from uuid import UUID

from trunkline.db.call import Call
from trunkline.db.calls.live import follow, live_jobs, live_workflows
from trunkline.db.listener import LIVE, Listener
from trunkline.errors import DatabaseProblem, DatabaseUnreachable, TrunklineError
from trunkline.model import LiveJob, LiveWorkflow

__all__ = ["Hub", "Watch"]

T = TypeVar("T")

Kind = Literal["job", "workflow"]

# Flags last for three minutes.
_RENEW_EVERY: Final = 60.0
_FLAGS: Final = 1000
_BATCH: Final = 100
# How long reads are collected for one call.
_GATHER: Final = 0.005
# The shortest time between two reads of one follower. A workflow is computed from all its jobs.
_LEAST: Final[dict[Kind, float]] = {"job": 0.05, "workflow": 0.25}
# A transaction that did not see the flag may commit after the first read. Reads at these ages find
# its change; later reads are for what nobody foresaw.
_EARLY: Final = (0.3, 1.0, 3.0)
_SELDOM: Final = 15.0
# Without notifications, each follower is read this often, or less often if there are many.
_POLL: Final = 0.5
_POLLS_PER_SECOND: Final = 1000
_TICK: Final = 0.1
_CHECK_EVERY: Final = 15.0
_TRY_AGAIN: Final = 60.0
_RETRY: Final = 0.5
# How long the connection stays open without a follower.
_LINGER: Final = 10.0

_log = logging.getLogger("trunkline.live")


class Runner(Protocol):
    """Runs a call in its own transaction."""

    async def __call__(self, call: Call[T], /) -> T:
        """Run the call."""


class Watch:
    """One follower of one job or workflow. Use `read` from one task at a time."""

    __slots__ = ("_early", "_hub", "_last", "changed", "due", "id", "kind")

    def __init__(self, hub: Hub, kind: Kind, known: UUID) -> None:
        self.kind: Kind = kind
        self.id = known
        self.changed = asyncio.Event()
        self.changed.set()
        # When to read next without a notification.
        self.due = time.monotonic() + _EARLY[0]
        self._early = list(_EARLY[1:])
        self._hub = hub
        self._last = 0.0

    async def read(self, attempt: int = 0, number: int = 0, timeout: float | None = None) -> Any:
        """Wait until something may have changed, then return the present state; None if unknown.

        The first read returns at once. Raises TimeoutError if nothing changes within the timeout.
        """
        async with asyncio.timeout(timeout):
            await self.changed.wait()
            pause = self._last + _LEAST[self.kind] - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            self.changed.clear()
            try:
                state = await self._hub.read(self, attempt, number)
            except BaseException:
                self.changed.set()
                raise
        self._last = time.monotonic()
        if isinstance(state, LiveJob) and state.has_more:
            self.changed.set()
        return state

    def postpone(self, regular: float) -> None:
        """Set the time of the next read without a notification."""
        self.due += self._early.pop(0) if self._early else regular
        self.due = max(self.due, time.monotonic())

    def close(self) -> None:
        """Stop following."""
        self._hub.drop(self)


class Hub:
    """The followers of one event loop."""

    def __init__(self, run: Runner, listen_dsn: Callable[[], Awaitable[str]]) -> None:
        self._run = run
        self._listen_dsn = listen_dsn
        self._watches: dict[UUID, set[Watch]] = {}
        self._count = 0
        # Until when ids are flagged, by our own clock.
        self._flagged: dict[UUID, float] = {}
        self._asked: list[tuple[Watch, int, int, asyncio.Future[Any]]] = []
        self._asking = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        # Whether notifications arrive.
        self.hears = False

    def __len__(self) -> int:
        return self._count

    def open(self, kind: Kind, known: UUID) -> Watch:
        """Follow a job or workflow until the watch is closed."""
        watch = Watch(self, kind, known)
        self._watches.setdefault(known, set()).add(watch)
        self._count += 1
        if not self._tasks or any(task.done() for task in self._tasks):
            self._tasks = [
                asyncio.create_task(self._read_forever(), name="trunkline live reads"),
                asyncio.create_task(self._tick_forever(), name="trunkline live timer"),
                asyncio.create_task(self._listen_forever(), name="trunkline live listener"),
            ]
        return watch

    def drop(self, watch: Watch) -> None:
        """Remove a follower. Its flag expires unless somebody else follows the same id."""
        watches = self._watches.get(watch.id, set())
        if watch in watches:
            watches.remove(watch)
            self._count -= 1
            if not watches:
                del self._watches[watch.id]
                self._flagged.pop(watch.id, None)

    async def read(self, watch: Watch, attempt: int, number: int) -> Any:
        """Return the state of what is watched, read together with others."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked.append((watch, attempt, number, answer))
        self._asking.set()
        return await answer

    async def close(self) -> None:
        """Close the connection; followers that wait receive a cancellation."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for *_, answer in self._asked:
            answer.cancel()
        self._asked.clear()

    def abandon(self) -> None:
        """Stop without an event loop that runs, or from another thread."""
        for task in self._tasks:
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        self._tasks = []

    async def _read_forever(self) -> None:
        while True:
            await self._asking.wait()
            await asyncio.sleep(_GATHER)
            self._asking.clear()
            while self._asked:
                batch, self._asked = self._asked[:_BATCH], self._asked[_BATCH:]
                batch = [asked for asked in batch if not asked[3].done()]
                try:
                    await self._answer(batch)
                except asyncio.CancelledError:
                    self._asked += batch
                    raise
                except (DatabaseUnreachable, DatabaseProblem) as error:
                    if not getattr(error, "retryable", True):
                        _fail(batch, error)
                        continue
                    self._asked = batch + self._asked
                    await asyncio.sleep(_RETRY)
                except Exception as error:  # noqa: BLE001 - the followers receive it
                    _fail(batch, error)

    async def _answer(self, batch: Sequence[tuple[Watch, int, int, asyncio.Future[Any]]]) -> None:
        if not batch:
            return
        await self._flag({asked[0].id for asked in batch} - self._flagged.keys())
        jobs = [asked for asked in batch if asked[0].kind == "job"]
        states: dict[tuple[UUID, int, int], LiveJob] = {}
        if jobs:
            offsets = list({(watch.id, attempt, number) for watch, attempt, number, _ in jobs})
            # Of one job, each offset is read: a row does not name the offset that it was read for.
            for part in _distinct(offsets):
                rows = {row.job_id: row for row in await self._run(live_jobs(part))}
                states |= {key: rows[key[0]] for key in part if key[0] in rows}
        workflows: dict[UUID, LiveWorkflow] = {}
        ids = {asked[0].id for asked in batch if asked[0].kind == "workflow"}
        if ids:
            read = await self._run(live_workflows(list(ids)))
            workflows = {workflow.workflow_id: workflow for workflow in read}
        for watch, attempt, number, answer in batch:
            if answer.done():
                continue
            is_job = watch.kind == "job"
            key = (watch.id, attempt, number)
            answer.set_result(states.get(key) if is_job else workflows.get(watch.id))

    async def _flag(self, ids: Iterable[UUID]) -> None:
        asked = list(ids)
        for start in range(0, len(asked), _FLAGS):
            part = asked[start : start + _FLAGS]
            await self._run(follow(part))
            until = time.monotonic() + _RENEW_EVERY
            self._flagged |= {known: until for known in part if known in self._watches}

    async def _tick_forever(self) -> None:
        used = time.monotonic()
        while True:
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            if self._watches:
                used = now
            elif now - used > _LINGER:
                break
            self._mark_due(now)
            late = [known for known, until in self._flagged.items() if until <= now]
            try:
                await self._flag(late)
            except TrunklineError as error:
                _log.debug("flags were not renewed: %s", error)
        # Nobody follows anything. The next follower starts the tasks again.
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _mark_due(self, now: float) -> None:
        regular = _SELDOM if self.hears else max(_POLL, self._count / _POLLS_PER_SECOND)
        for watches in self._watches.values():
            for watch in watches:
                if watch.due <= now:
                    watch.postpone(regular)
                    watch.changed.set()

    async def _listen_forever(self) -> None:
        listener: Listener | None = None
        try:
            while True:
                try:
                    if listener is None:
                        listener = Listener(await self._listen_dsn(), self._hear, channels=(LIVE,))
                    self.hears = await listener.listen()
                    # Changes before the subscription.
                    self._mark(self._watches)
                    if not self.hears:
                        await listener.close()
                        await asyncio.sleep(_TRY_AGAIN)
                        continue
                    await self._stay(listener)
                except Exception as error:  # noqa: BLE001 - polling continues without it
                    _log.debug("the listening connection broke: %s", error)
                    self.hears = False
                    if listener is not None:
                        with contextlib.suppress(Exception):
                            await listener.close()
                    self._mark(self._watches)
                    await asyncio.sleep(_RETRY)
        finally:
            self.hears = False
            if listener is not None:
                with contextlib.suppress(Exception):
                    await listener.close()

    async def _stay(self, listener: Listener) -> None:
        checked = time.monotonic()
        while True:
            await asyncio.sleep(_RETRY)
            if not listener.connected or time.monotonic() - checked > _CHECK_EVERY:
                await listener.check()
                checked = time.monotonic()

    def _hear(self, _channel: str, payload: str) -> None:
        known = []
        for part in payload.split(" "):
            # Every role can send on a channel.
            with contextlib.suppress(ValueError):
                known.append(UUID(part))
        self._mark(known)

    def _mark(self, ids: Iterable[UUID]) -> None:
        for known in ids:
            for watch in self._watches.get(known, ()):
                watch.changed.set()


def _distinct(
    offsets: Sequence[tuple[UUID, int, int]],
) -> list[list[tuple[UUID, int, int]]]:
    """Split offsets so that each part names a job once."""
    parts: list[dict[UUID, tuple[UUID, int, int]]] = []
    for offset in offsets:
        part = next((part for part in parts if offset[0] not in part), None)
        if part is None:
            parts.append({offset[0]: offset})
        else:
            part[offset[0]] = offset
    return [list(part.values()) for part in parts]


def _fail(
    batch: Iterable[tuple[Watch, int, int, asyncio.Future[Any]]], error: BaseException
) -> None:
    for *_, answer in batch:
        if not answer.done():
            answer.set_exception(error)
