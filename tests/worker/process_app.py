"""Handlers that run in processes of their own: they must be importable by these."""

import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psycopg

from trunkline import Cancel, Discard, Retry, Snooze, SyncContext, Trunkline

app = Trunkline()


@app.task(process=True)
def add(a: int, b: int) -> int:
    return a + b


@app.task(process=True, aliases=["resize"])
def scale(ctx: SyncContext) -> str:
    return f"ran {ctx.task}"


@app.task(process=True)
def pid() -> int:
    return os.getpid()


@app.task(process=True)
def fork() -> list[int]:
    """Leave a child behind that has everything open, the socket to the worker included."""
    child = os.fork()
    if child == 0:
        while True:
            time.sleep(60)
    return [os.getpid(), child]


@app.task(process=True)
def fail(text: str) -> None:
    raise ValueError(text)


@app.task(process=True)
def end(how: str) -> Any:
    outcomes: dict[str, Any] = {
        "snooze": Snooze(60, "not now"),
        "cancel": Cancel("not wanted"),
        "retry": Retry(after=5),
        "discard": Discard("no use"),
    }
    raise outcomes[how]


@app.task(process=True)
def unstorable() -> Any:
    return object()


@app.task(process=True)
def miscounted(ctx: SyncContext, in_transaction: bool = False) -> int:
    if in_transaction:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values ('undone')")
            ctx.result = "three"
    wrong: Any = "three"
    return wrong  # type: ignore[no-any-return]


@app.task(process=True)
def large(size: int) -> str:
    return "x" * size


@app.task(process=True)
def die(how: str) -> None:
    if how == "exit":
        sys.exit(7)
    if how == "abrupt":
        os._exit(9)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(process=True)
def wait(folder: str) -> str:
    """Say that it runs, then wait for ever; say whether it could clean up."""
    try:
        (Path(folder) / f"runs-{os.getpid()}").touch()
        while True:
            time.sleep(60)
    finally:
        (Path(folder) / "cleaned").touch()


@app.task(process=True)
def deaf(folder: str) -> None:
    """Ignores a polite request."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (Path(folder) / f"runs-{os.getpid()}").touch()
    while True:
        time.sleep(60)


@app.task(process=True)
def advance(ctx: SyncContext) -> list[Any]:
    ctx.progress(20)
    return [ctx.attempt, ctx.task, ctx.worker, ctx.cancelled]


@app.task(process=True)
def advance_for_ever(ctx: SyncContext, folder: str) -> None:
    (Path(folder) / f"runs-{os.getpid()}").touch()
    while True:
        ctx.progress(20, "a fifth", phase="first")
        time.sleep(0.02)


@app.task(process=True)
def post(ctx: SyncContext, name: str, error: bool = False) -> Any:
    with ctx.transaction() as connection:
        connection.execute("insert into notes values (%s)", (name,))
        ctx.result = {"noted": name}
        if error:
            raise ValueError("after the write")
    return "not stored: the transaction has ended the job"


@app.task(process=True)
def post_when_cancelled(ctx: SyncContext, dsn: str) -> None:
    with ctx.transaction() as connection, psycopg.connect(dsn, autocommit=True) as other:
        connection.execute("insert into notes values ('cancelled')")
        other.execute("select trunkline.cancel(%s, 'changed my mind')", (ctx.job_id,))
        other.execute(
            "select trunkline.heartbeat(%s, array[%s::uuid], array[%s])",
            (ctx.worker, ctx.job_id, ctx.attempt),
        )


@app.task(process=True, max_attempts=1)
def loses_it(ctx: SyncContext, times: int) -> None:
    """Lose the connection of its transaction, so many times."""
    with ctx.transaction() as connection:
        connection.execute("insert into notes values (%s)", (f"attempt {ctx.attempt}",))
        if ctx.attempt <= times:
            connection.execute("select pg_terminate_backend(pg_backend_pid())")


@app.task(process=True)
def speak(ctx: SyncContext) -> None:
    logging.getLogger("my.own").warning("a line of the handler's own logger")
    ctx.log.warning("a line of the context's logger")


def plain() -> None:
    """Not what its name says: the task of this name is elsewhere."""


renamed = app.task(process=True, name="renamed")(plain)


@app.task(process=True)
def emitting(ctx: SyncContext, words: list[str], within: bool) -> None:
    if within:
        with ctx.transaction():
            for word in words:
                ctx.emit(word)
    else:
        for word in words:
            ctx.emit(word)
