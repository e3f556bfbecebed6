"""Pieces of a worker on their own: options, signals, the start, the end, and a blocked loop."""

import asyncio
import logging
import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.worker.scene import eventually
from trunkline import Trunkline
from trunkline.db.lasting import LastingConnection
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    InvalidOptions,
    InvalidTask,
    SchemaNewerThanClient,
    TransactionConflict,
)
from trunkline.worker import entry, stop_signals
from trunkline.worker import worker as module
from trunkline.worker.claimer import Claimer
from trunkline.worker.completer import Completer
from trunkline.worker.duties import Duties
from trunkline.worker.options import WorkerOptions, new_worker_id
from trunkline.worker.part import pause_after_error
from trunkline.worker.rescan import Rescan
from trunkline.worker.roster import Late, Roster, check_start
from trunkline.worker.worker import RESTART, Worker


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"concurrency": 0}, "concurrency is 0", "Pass 1 or more."),
        ({"processes": 0}, "processes is 0", "Pass 1 or more."),
        ({"threads": 0}, "threads is 0", "Pass 1 or more."),
        ({"grace": -0.1}, "grace is -0.1", "Pass 0 or more seconds."),
        ({"grace": float("nan")}, "grace is nan", "Pass 0 or more seconds."),
        ({"queues": ()}, "queues is ()", "Pass names in a tuple, or None for all."),
        ({"tasks": ()}, "tasks is ()", "Pass names in a tuple, or None for all."),
        ({"tasks": "work"}, "tasks is 'work'", "Pass names in a tuple, or None for all."),
    ],
)
def test_options_without_a_worker_that_works(
    options: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidOptions) as refused:
        WorkerOptions(**options)
    assert (str(refused.value), refused.value.hint) == (message, hint)


def test_options_at_their_bounds() -> None:
    WorkerOptions(concurrency=1, processes=1, threads=1, grace=0.0, queues=("q",), tasks=("t",))
    lists: Any = {"queues": ["q"], "tasks": ["t"]}
    WorkerOptions(**lists)


def test_an_id_begins_with_the_name_or_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "host.example.com")
    assert new_worker_id(None).startswith("host-")
    assert new_worker_id("me").startswith("me-")
    assert new_worker_id("x" * 200).startswith("x" * 100 + "-")
    monkeypatch.setattr("socket.gethostname", lambda: "")
    assert new_worker_id(None).startswith("worker-")


def test_signals_that_are_ignored_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored = {signal.SIGINT}
    monkeypatch.setattr(
        signal, "getsignal", lambda one: signal.SIG_IGN if one in ignored else signal.SIG_DFL
    )
    assert stop_signals.stop_signals() == (signal.SIGTERM, signal.SIGHUP)
    ignored.clear()
    assert stop_signals.stop_signals() == stop_signals.STOP_SIGNALS


@pytest.fixture
def app() -> Trunkline:
    made = Trunkline("postgresql://nobody@nowhere/none")

    @made.task(aliases=["old"])
    async def work() -> None: ...

    @made.task
    async def other() -> None: ...

    return made


async def test_a_worker_serves_the_tasks_that_are_wanted(app: Trunkline) -> None:
    def served(*names: str) -> list[str]:
        found = Worker(app, WorkerOptions(tasks=names or None))
        return [task.name for task in found._served]  # noqa: SLF001

    assert served() == ["work", "other"]
    assert served("other") == ["other"]
    assert served("old", "work") == ["work"]
    with pytest.raises(InvalidOptions) as refused:
        served("work", "z", "a")
    assert str(refused.value) == "The application has no task a, z"
    assert refused.value.hint == "It has other, work."
    with pytest.raises(InvalidTask, match=r"^The application has no tasks$"):
        Worker(Trunkline("postgresql://nobody@nowhere/none"))
    with pytest.raises(InvalidOptions) as refused:
        Worker(Trunkline("postgresql://nobody@nowhere/none"), WorkerOptions(tasks=("x",)))
    assert refused.value.hint == "It has none."


@pytest.mark.parametrize(("supervised", "hurries"), [(False, True), (True, False)])
async def test_an_echo_of_a_signal_does_not_end_the_grace(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch, supervised: bool, hurries: bool
) -> None:
    times = iter((100.0, 100.4, 101.0))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=times.__next__))
    worker = Worker(app, supervised=supervised)
    worker._on_signal("SIGTERM")  # noqa: SLF001
    shutdown = worker._shutdown  # noqa: SLF001
    assert shutdown.reason == "SIGTERM"
    worker._on_signal("SIGINT")  # noqa: SLF001
    assert shutdown._hurry.is_set() is hurries  # noqa: SLF001
    worker._on_signal("SIGINT")  # noqa: SLF001
    assert shutdown._hurry.is_set()  # noqa: SLF001
    assert shutdown.reason == "SIGTERM"


async def test_a_worker_ends_with_the_code_of_its_reason(
    app: Trunkline, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(app)
    worker._restart()  # noqa: SLF001
    assert worker._exit_code == RESTART  # noqa: SLF001
    worker = Worker(app)
    worker.stop()
    worker._restart()  # noqa: SLF001
    assert worker._exit_code == 0  # noqa: SLF001
    worker = Worker(app)
    error = SchemaNewerThanClient("too new", hint="Upgrade.")
    for _ in range(2):
        worker._on_outdated(error)  # noqa: SLF001
    assert worker._exit_code == error.exit_code  # noqa: SLF001
    assert caplog.messages == ["too new (schema_newer_than_client). Upgrade."]
    assert worker._shutdown.reason == "this package is too old for the schema"  # noqa: SLF001
    assert not worker._shutdown._hurry.is_set()  # noqa: SLF001


async def test_a_worker_that_was_declared_dead_registers_once_at_a_time(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(app)
    woken: list[int] = []
    claimer: Any = SimpleNamespace(reset_sleep=lambda: woken.append(1))
    worker._claimer = claimer  # noqa: SLF001
    go = asyncio.Event()
    outcome: list[Exception | None] = [None, ConnectionLost("gone")]

    async def register(_: Worker) -> None:
        await go.wait()
        error = outcome.pop(0)
        if error is not None:
            raise error

    monkeypatch.setattr(Worker, "_register", register)
    for _ in range(3):
        worker._on_state("stopped")  # noqa: SLF001
        await asyncio.sleep(0)
    message = "the engine considers this worker stopped; registering again"
    assert caplog.messages == [message]
    go.set()
    await eventually(lambda: woken, "it is registered")
    worker._on_state("stopped")  # noqa: SLF001
    await eventually(lambda: not outcome, "it tries again")
    await asyncio.sleep(0)
    assert caplog.messages == [message, message, "could not register again: gone"]
    assert woken == [1]
    worker._on_state("draining")  # noqa: SLF001
    assert worker._shutdown.reason == "drained by an operator"  # noqa: SLF001


@pytest.mark.parametrize(
    ("errors", "expected", "pauses"),
    [
        ([], None, []),
        ([TransactionConflict("x")] * 2, None, [0.5, 1.0]),
        ([ConnectionLost("x")] * 5, ConnectionLost, [0.5, 1.0, 2.0, 4.0]),
        ([DatabaseProblem("x")], DatabaseProblem, []),
    ],
)
async def test_a_start_is_tried_again_while_it_may_succeed(
    app: Trunkline,
    monkeypatch: pytest.MonkeyPatch,
    errors: list[DatabaseProblem],
    expected: type[Exception] | None,
    pauses: list[float],
) -> None:
    waiting = list(errors)
    waited: list[float] = []

    async def set_up(_: Worker) -> None:
        if waiting:
            raise waiting.pop(0)

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(Worker, "_set_up", set_up)
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep, Event=asyncio.Event))
    starting = Worker(app)._set_up_patiently()  # noqa: SLF001
    if expected is None:
        await starting
    else:
        with pytest.raises(expected):
            await starting
    assert waited == pauses


def test_a_limited_job_starts_in_time_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: 10.0)
    monkeypatch.setattr("trunkline.worker.roster.time", clock)
    check_start(None)
    check_start(10.0)
    with pytest.raises(Late):
        check_start(9.9)


@pytest.mark.parametrize(
    ("errors", "expected"), [(1, 0.2), (2, 0.4), (3, 0.8), (4, 1.6), (5, 3.0), (50, 3.0)]
)
def test_pauses_grow_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, errors: int, expected: float
) -> None:
    monkeypatch.setattr("random.uniform", lambda _low, _high: 1.0)
    assert pause_after_error(ConnectionLost("x"), errors) == pytest.approx(expected)
    assert pause_after_error(ValueError("x"), errors) == 10.0


@pytest.mark.parametrize(
    ("options", "supervised"),
    [
        ({}, False),
        ({"processes": 2}, True),
        ({"memory_limit": 1}, True),
    ],
)
def test_several_processes_or_a_limit_need_a_supervisor(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], supervised: bool
) -> None:
    ran: list[str] = []
    resolved: list[Any] = []

    class Supervised:
        def __init__(self, _: WorkerOptions) -> None: ...

        def run(self) -> int:
            ran.append("supervisor")
            return 3

    def run_one(_: WorkerOptions) -> int:
        ran.append("one")
        return 4

    def resolve(dsn: str | None, *, embedded: bool | None) -> Any:
        resolved.append((dsn, embedded))
        return nullcontext()

    app = SimpleNamespace(dsn="postgresql://app@h/d", embedded=False)
    monkeypatch.setattr(entry, "set_up_logging", lambda *form: ran.append("/".join(form)))
    monkeypatch.setattr(entry, "load", lambda _: app)
    monkeypatch.setattr(entry, "resolve", resolve)
    monkeypatch.setattr(entry, "Supervisor", Supervised)
    monkeypatch.setattr(entry, "run_one", run_one)
    monkeypatch.setenv("TRUNKLINE_DSN", "before")
    assert entry.run_worker(WorkerOptions(**options)) == (3 if supervised else 4)
    assert ran == ["console/info", "supervisor" if supervised else "one"]
    assert resolved == ([("postgresql://app@h/d", False)] if supervised else [])
    assert os.environ["TRUNKLINE_DSN"] == "before"
    entry.run_worker(WorkerOptions(dsn="postgresql://given@h/d", **options))
    assert os.environ["TRUNKLINE_DSN"] == "postgresql://given@h/d"
    assert not supervised or resolved[-1] == ("postgresql://given@h/d", False)


async def test_parts_close_their_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    async def close(connection: Any) -> None:
        closed.append(connection._name)  # noqa: SLF001

    monkeypatch.setattr(LastingConnection, "close", close)
    nothing: Any = None
    roster = Roster()
    parts = [
        Claimer("", "w", None, [], executor=nothing, roster=roster, is_notified=nothing),
        Completer("", "w", roster),
        Duties("", pulse=1.0),
        Rescan("", "w", None, [], executor=nothing, roster=roster, position=nothing),
    ]
    for part in parts:
        await part.close()
    assert closed == [f"trunkline {name}" for name in ("claimer", "completer", "duties", "rescan")]
    assert logging.getLogger("trunkline.worker.rescan") is parts[3].log
