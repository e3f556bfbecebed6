"""An application as a user would write it; the tests beside it are such as a user would write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from trunkline import Backoff, Cancel, Context, Discard, Retry, Snooze, SyncContext, Trunkline

app = Trunkline("host=nowhere.invalid")


@dataclass
class Receipt:
    order: int
    copies: int


@app.task
async def ship(order: int, copies: int = 1) -> Receipt:
    return Receipt(order, copies)


@app.task(queue="mail", priority=5, aliases=["post"])
def mail(to: str, lines: dict[str, int] | None = None) -> str:
    return f"sent to {to}"


@app.task
async def order(number: int) -> None:
    """Makes others, through the application's own connections, asynchronous and not."""
    await ship.enqueue(order=number)
    await mail.options(delay="1h").enqueue(to="customer")


@app.task
def order_in_a_thread(number: int) -> None:
    ship.sync.enqueue(order=number)


@app.task
def weigh(order: int) -> float:
    """Returns text in place of its number."""
    unread: Any = f"{order} kg"
    return unread  # type: ignore[no-any-return]


@app.task(max_attempts=3, backoff=Backoff(base="1m", jitter=0))
async def flaky(ctx: Context, until: int) -> int:
    if ctx.attempt < until:
        raise ConnectionError(f"attempt {ctx.attempt} failed")
    return ctx.attempt


@app.task
def ending(how: str) -> object:
    match how:
        case "snooze":
            return Snooze("5m")
        case "cancel":
            raise Cancel("not wanted")
        case "retry":
            raise Retry(after="10m")
        case "discard":
            raise Discard("no use")
        case "unstorable":
            return object()
        case "nul":
            return "a\0b"
        case "strange error":
            raise OSError("caf\udce9\0")
        case "strange reason":
            raise Cancel("caf\udce9\0")
        case "too large":
            return os.urandom(2_000_000).hex()
        case _:
            raise KeyError(how)


@app.task
async def written(ctx: Context, name: str) -> str:
    await ctx.progress(50, "half way")
    async with ctx.transaction() as connection:
        await connection.execute("insert into written values (%s)", (name,))
        ctx.result = name.upper()
    return "not stored"


@app.task
def written_in_a_thread(ctx: SyncContext, name: str) -> None:
    ctx.progress(50)
    with ctx.transaction() as connection:
        connection.execute("insert into written values (%s)", (name,))
        if name == "oops":
            raise ValueError("undone")


@app.task(process=True)
def crunch(number: int) -> int:
    if number < 0:
        raise ValueError("negative")
    return os.getpid() if number == 0 else number * number


@app.task
async def endless() -> None:
    await endless.enqueue()


@app.task(schedule="0 3 * * *")
def nightly() -> None:
    """Enqueued by the engine."""
