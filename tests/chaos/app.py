"""The application that the chaos tests run in real worker processes.

Handlers wait for gates, which are files: a test opens one when it is done with its mischief, and a
file can be seen whatever happens to the server.
"""

import asyncio
import ctypes
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.support.ledger import recorded, recorded_async
from trunkline import Backoff, Context, Snooze, SyncContext, Trunkline
from trunkline.handler import JobContext

__all__ = ["app"]

GATES_VARIABLE = "CHAOS_GATES"
LISTEN_VARIABLE = "CHAOS_LISTEN_DSN"
# Long enough for a busy machine; only a failing test ever takes it.
_PATIENCE = 600.0
_PAUSE = 0.01

app = Trunkline(listen_dsn=os.environ.get(LISTEN_VARIABLE))

_LEASE = "6s"
_AT_ONCE = Backoff(base=0, factor=1, cap=0, jitter=0)
_POSTING = "insert into chaos.postings (job_id, attempt) values (%s, %s)"
_hoard: list[bytearray] = []


def _shut(gate: str, attempt: int, give_up: float) -> bool:
    """Whether the gate is closed, for every attempt and for this one."""
    if time.monotonic() > give_up:
        raise TimeoutError(f"gate {gate} was never opened")
    gates = Path(os.environ[GATES_VARIABLE])
    return not (gates / gate).exists() and not (gates / f"{gate}.{attempt}").exists()


async def _pass(gate: str, ctx: Context) -> None:
    give_up = time.monotonic() + _PATIENCE
    while _shut(gate, ctx.attempt, give_up):
        await asyncio.sleep(_PAUSE)


def _pass_blocking(gate: str, ctx: JobContext) -> None:
    give_up = time.monotonic() + _PATIENCE
    while _shut(gate, ctx.attempt, give_up):
        time.sleep(_PAUSE)


async def _post(ctx: Context) -> None:
    async with ctx.transaction() as connection:
        await connection.execute(
            "insert into chaos.postings (job_id, attempt) values (%s, %s)",
            (ctx.job_id, ctx.attempt),
        )


@app.task(lease=_LEASE, max_attempts=100, crash_limit=100, backoff=_AT_ONCE)
async def quick(ctx: Context, number: int = 0) -> int:
    """Do nothing, and return its argument."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        return number


@app.task(lease=_LEASE, max_attempts=100, crash_limit=100, backoff=_AT_ONCE)
async def posted(ctx: Context) -> None:
    """Write in the transaction of its completion."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        pass
    async with ctx.transaction() as connection:
        await connection.execute(
            "insert into chaos.postings (job_id, attempt) values (%s, %s)",
            (ctx.job_id, ctx.attempt),
        )


@app.task(lease=_LEASE, max_attempts=100, crash_limit=100, backoff=_AT_ONCE)
async def dawdles(ctx: Context) -> None:
    """Take a moment, so that a kill meets it."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        await asyncio.sleep(0.2)


@app.task(lease=_LEASE, max_attempts=2, backoff=_AT_ONCE)
async def naps(ctx: Context) -> None:
    """Put itself off once."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        if ctx.attempt == 1:
            raise Snooze("500ms")


@app.task(lease=_LEASE, max_attempts=2, backoff=_AT_ONCE)
async def tells_time(ctx: Context) -> str:
    """Return the wall clock of its process."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        return datetime.now(UTC).isoformat()


@app.task(lease=_LEASE, max_attempts=2, backoff=_AT_ONCE)
async def fails_once(ctx: Context) -> None:
    """Fail the first time."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        if ctx.attempt == 1:
            raise ValueError("as it should")


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def gated(ctx: Context, gate: str) -> int:
    """Wait for a gate; return the attempt that came through."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        await _pass(gate, ctx)
    return ctx.attempt


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def lingers(ctx: Context, gate: str) -> int:
    """Do the work first and wait then, so that the end needs no server."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        pass
    await _pass(gate, ctx)
    return ctx.attempt


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
def gated_thread(ctx: SyncContext, gate: str) -> int:
    """Do the same in a thread."""
    with recorded(ctx.job_id, ctx.attempt):
        _pass_blocking(gate, ctx)
    return ctx.attempt


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE, process=True)
def gated_process(ctx: SyncContext, gate: str) -> int:
    """Do the same in another process."""
    with recorded(ctx.job_id, ctx.attempt):
        _pass_blocking(gate, ctx)
    return ctx.attempt


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def gated_posting(ctx: Context, gate: str) -> None:
    """Wait for a gate, then write in the transaction of its completion."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        await _pass(gate, ctx)
    await _post(ctx)


@app.task(lease="1m", hard_limit="15m", max_attempts=1)
async def posts_once(ctx: Context, gate: str) -> None:
    """Wait for a gate within the transaction of its completion; a single failure is its end."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        pass
    async with ctx.transaction() as connection:
        await connection.execute(_POSTING, (ctx.job_id, ctx.attempt))
        await _pass(gate, ctx)


@app.task(lease="1m", hard_limit="15m", max_attempts=1)
def posts_once_thread(ctx: SyncContext, gate: str) -> None:
    """Do the same in a thread."""
    with recorded(ctx.job_id, ctx.attempt):
        pass
    with ctx.transaction() as connection:
        connection.execute(_POSTING, (ctx.job_id, ctx.attempt))
        _pass_blocking(gate, ctx)


@app.task(lease="1m", hard_limit="15m", max_attempts=1, process=True)
def posts_once_process(ctx: SyncContext, gate: str) -> None:
    """Do the same in another process."""
    with recorded(ctx.job_id, ctx.attempt):
        pass
    with ctx.transaction() as connection:
        connection.execute(_POSTING, (ctx.job_id, ctx.attempt))
        _pass_blocking(gate, ctx)


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def stubborn(ctx: Context, gate: str) -> None:
    """Wait for a gate and do not let itself be cancelled."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        while True:
            try:
                await _pass(gate, ctx)
            except asyncio.CancelledError:
                continue
            return


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def blocking(ctx: Context, gate: str) -> int:
    """Wait for a gate the wrong way: nothing else runs on the event loop meanwhile."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        _pass_blocking(gate, ctx)
    return ctx.attempt


@app.task(lease=_LEASE, max_attempts=1, hard_limit="3s")
async def endless(ctx: Context) -> None:
    """Run past the hard limit, on the event loop."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        await asyncio.sleep(_PATIENCE)


@app.task(lease=_LEASE, max_attempts=1, hard_limit="3s")
def endless_thread(ctx: SyncContext, gate: str) -> None:
    """Run past the hard limit, in a thread, until a gate opens."""
    with recorded(ctx.job_id, ctx.attempt):
        _pass_blocking(gate, ctx)


@app.task(lease=_LEASE, max_attempts=2, hard_limit="8s", backoff=_AT_ONCE, process=True)
def endless_process(ctx: SyncContext) -> None:
    """Run past the hard limit, in another process."""
    with recorded(ctx.job_id, ctx.attempt):
        time.sleep(_PATIENCE)


@app.task(lease=_LEASE, max_attempts=2, backoff=_AT_ONCE, process=True)
def leaves(ctx: SyncContext, code: int) -> None:
    """End its process without a word."""
    with recorded(ctx.job_id, ctx.attempt):
        os._exit(code)


@app.task(lease=_LEASE, max_attempts=2, backoff=_AT_ONCE, process=True)
def crashes(ctx: SyncContext) -> None:
    """Read where nothing may be read."""
    with recorded(ctx.job_id, ctx.attempt):
        ctypes.string_at(0)


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=2, backoff=_AT_ONCE)
async def crosses(ctx: Context, first: str, second: str, gate: str) -> None:
    """Lock two rows in the given order, with a gate between: two of them deadlock."""
    async with recorded_async(ctx.job_id, ctx.attempt), ctx.transaction() as connection:
        change = "update chaos.accounts set balance = balance + 1 where name = %s"
        await connection.execute(change, (first,))
        if ctx.attempt == 1:
            (Path(os.environ[GATES_VARIABLE]) / f"{ctx.job_id}").touch()
            await _pass(gate, ctx)
        await connection.execute(change, (second,))


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def swallows(ctx: Context, body: str) -> int:
    """Take much and return little."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        return len(body)


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def writes_much(ctx: Context, gate: str, length: int) -> str:
    """Wait for a gate and return a large result that does not compress."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        await _pass(gate, ctx)
    return os.urandom(length // 2).hex()


@app.task(lease=_LEASE, hard_limit="15m", max_attempts=5, backoff=_AT_ONCE)
async def hoards(ctx: Context, megabytes: int) -> int:
    """Take memory and never give it back; return the process that did."""
    async with recorded_async(ctx.job_id, ctx.attempt):
        for _ in range(megabytes):
            # Piece by piece, or the whole process would stand still for a while.
            _hoard.append(bytearray(os.urandom(1024) * 1024))
            await asyncio.sleep(0)
    return os.getpid()
