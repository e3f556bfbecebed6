"""Pieces of a worker on their own: options, signals, the start, the end, and a blocked loop."""

import asyncio
import logging
import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tests.worker.scene import eventually, held_job
from trunkline import Trunkline
from trunkline.db.lasting import LastingConnection
from trunkline.db.listener import CANCEL, WAKE, Listener
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    InvalidOptions,
    InvalidTask,
    SchemaNewerThanClient,
    TransactionConflict,
)
from trunkline.worker import entry, heart, stop_signals
from trunkline.worker import worker as module
from trunkline.worker.claimer import Claimer
from trunkline.worker.completer import Completer
from trunkline.worker.duties import Duties
from trunkline.worker.heart import Heart
from trunkline.worker.looker import Looker
from trunkline.worker.options import WorkerOptions, new_worker_id
from trunkline.worker.part import Part, pause_after_error
from trunkline.worker.report import End
from trunkline.worker.roster import Late, Roster, Stop, check_start
from trunkline.worker.shutdown import Shutdown
from trunkline.worker.wakeup import Wakeup
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


async def test_a_worker_that_was_given_up_registers_once_at_a_time(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(app)
    woken: list[int] = []
    claimer: Any = SimpleNamespace(forget_sleep=lambda: woken.append(1))
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
    given_up = "the engine gave this worker up (stopped); registering again"
    assert caplog.messages == [given_up]
    go.set()
    await eventually(lambda: woken, "it is registered")
    worker._on_state("stopped")  # noqa: SLF001
    await eventually(lambda: not outcome, "it tries again")
    await asyncio.sleep(0)
    assert caplog.messages == [given_up, given_up, "could not register again: gone"]
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


class Blocked:
    """A heart whose loop and thread came around at times that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, roster: Roster) -> None:
        self.now = 100.0
        monkeypatch.setattr(heart, "time", SimpleNamespace(monotonic=lambda: self.now))

        def nothing(*_: Any) -> None: ...

        self.heart = Heart(
            *("", "w", roster),
            every=5.0,
            detail=dict,
            stop_job=nothing,
            on_state=nothing,
            on_outdated=nothing,
        )

    def look(self, at: float, *, own: float = 0.25) -> None:
        self.heart._own_turn = at - own  # noqa: SLF001
        self.now = at
        self.heart._look_at_loop()  # noqa: SLF001


async def test_a_blocked_loop_is_told_when_it_is_long_and_again_when_doubled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    roster = Roster()
    blocked = Blocked(monkeypatch, roster)
    told = []
    for at in (100.5, 100.9, 101.0, 101.5, 101.9, 102.0, 103.9, 104.0):
        before = len(caplog.records)
        blocked.look(at)
        if len(caplog.records) > before:
            told.append(at)
    assert told == [101.0, 102.0, 104.0]
    assert "blocked for 4.0 s by no handler of ours" in caplog.messages[-1]
    # The loop came around: the next time is told from the start.
    blocked.heart._tick_at = 104.5  # noqa: SLF001
    blocked.look(105.0)
    blocked.look(105.6)
    assert len(caplog.records) == 4
    # If this thread was late, the whole process was stopped.
    caplog.clear()
    blocked.look(120.0, own=1.1)
    assert caplog.records == []


async def test_a_blocked_loop_names_the_job_of_its_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    roster = Roster()
    mine, other = held_job("mine"), held_job("other")
    for held in (other, mine):
        roster._held[held.job.job_id] = held  # noqa: SLF001
    mine.runner = asyncio.current_task()
    Blocked(monkeypatch, roster).look(102.0)
    (record,) = caplog.records
    assert f"by task mine, job {mine.job.job_id};" in record.getMessage()
    fields: Any = record
    assert (fields.job_id, fields.task) == (str(mine.job.job_id), "mine")
    assert "_look_at_loop" in record.getMessage()
    assert record.getMessage().count("File ") == 4


async def test_a_wish_to_end_is_kept_and_a_second_one_hurries() -> None:
    shutdown = Shutdown(30.0)
    waiting = asyncio.ensure_future(shutdown.wanted())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert shutdown.want_once("first") is True
    await asyncio.wait_for(waiting, 60)
    assert shutdown.want_once("second") is False
    assert (shutdown.reason, shutdown._hurry.is_set()) == ("first", False)  # noqa: SLF001
    shutdown.want("third")
    assert (shutdown.reason, shutdown._hurry.is_set()) == ("first", True)  # noqa: SLF001
    fresh = Shutdown(30.0)
    fresh.hurry("now")
    assert (fresh.reason, fresh._hurry.is_set()) == ("now", True)  # noqa: SLF001
    await asyncio.wait_for(fresh.wanted(), 60)


class Ending:
    """What a shutdown works on."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.roster = Roster()
        self.busy = 0
        self.accepting = True

    async def stop(self) -> None:
        assert not self.accepting
        self.steps.append("stopped")

    def take_unstarted(self) -> list[Any]:
        return [held_job("unstarted")]

    def add(self, report: Any) -> None:
        self.steps.append((report.end, report.reason))

    def stop_job(self, held: Any, stop: Stop) -> None:
        self.steps.append((held.job.task, stop))
        held.runner = None
        self.roster.remove([held.job])

    async def drained(self) -> None:
        self.steps.append("drained")


@pytest.mark.parametrize("hurried", [True, False])
async def test_a_shutdown_hands_back_waits_and_interrupts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hurried: bool
) -> None:
    monkeypatch.setattr("trunkline.worker.shutdown._LOOK", 0.001)
    ending: Any = Ending()
    running, resting = held_job("running"), held_job("resting")
    running.runner = asyncio.current_task()
    for held in (running, resting):
        ending.roster._held[held.job.job_id] = held  # noqa: SLF001
    ending.busy = 1
    shutdown = Shutdown(3600.0 if hurried else 0.01)
    shutdown.want("why")
    if hurried:
        shutdown.want("again")
    await shutdown.carry_out([ending], ending, ending, ending.roster)
    assert ending.steps == [
        "stopped",
        (End.HAND_BACK, "the worker shut down"),
        ("running", Stop.SHUTDOWN),
        "drained",
    ]
    assert caplog.messages == [
        "shutting down (why): 2 jobs held",
        f"interrupting job {running.job.job_id} of running",
        "1 jobs are left to their leases",
    ]


class Ears:
    """A listener that hears what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[bool] = [True]
        self.connected = True
        self.checks = self.closed = 0
        self.broken = False
        ears = self

        async def listen(_: Listener) -> bool:
            return ears.answers.pop(0)

        async def check(_: Listener) -> None:
            ears.checks += 1
            if ears.broken:
                raise ConnectionLost("silent")

        async def close(_: Listener) -> None:
            ears.closed += 1

        monkeypatch.setattr(Listener, "listen", listen)
        monkeypatch.setattr(Listener, "check", check)
        monkeypatch.setattr(Listener, "close", close)
        monkeypatch.setattr(Listener, "connected", property(lambda _: ears.connected))
        self.now = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr("trunkline.worker.wakeup.time", clock)
        self.pauses: list[float] = []

        async def pause(_: Part, seconds: float) -> None:
            ears.pauses.append(seconds)

        monkeypatch.setattr(Part, "pause", pause)


async def test_a_wake_up_listens_checks_and_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ears = Ears(monkeypatch)
    worked: list[int] = []
    wakeup = Wakeup("", queues=None, on_work=lambda: worked.append(1), on_cancel=lambda _: None)
    assert not wakeup.hears
    await wakeup.turn()
    assert wakeup.hears
    assert worked == [1]
    assert ears.pauses == []
    ears.now += 15
    await wakeup.turn()
    assert (ears.checks, ears.pauses) == (0, [0.5])
    ears.now += 0.1
    await wakeup.turn()
    await wakeup.turn()
    assert ears.checks == 1
    ears.connected = False
    await wakeup.turn()
    assert ears.checks == 2
    ears.broken = True
    with pytest.raises(ConnectionLost):
        await wakeup.turn()
    assert not wakeup.hears
    assert ears.closed == 1
    ears.answers = [False, False, True]
    ears.pauses.clear()
    await wakeup.turn()
    await wakeup.turn()
    assert (ears.pauses, ears.closed, wakeup.hears) == ([60.0, 60.0], 3, False)
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("no notification arrives over this connection")
    assert worked == [1]
    await wakeup.turn()
    assert wakeup.hears
    ears.checks = 0
    wakeup.stopping.set()
    await wakeup.turn()
    assert ears.checks == 0
    await wakeup.close()
    assert not wakeup.hears


async def test_only_words_for_this_worker_wake_it(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []
    everywhere = Wakeup(
        "", queues=None, on_work=lambda: heard.append("all"), on_cancel=heard.append
    )
    here = Wakeup("", queues=("a",), on_work=lambda: heard.append("a"), on_cancel=heard.append)
    job = uuid4()
    for wakeup in (everywhere, here):
        for channel, payload in (
            *((WAKE, "a"), (WAKE, "b"), (CANCEL, str(job)), (CANCEL, "no id"), ("x", "a")),
        ):
            wakeup._act(channel, payload)  # noqa: SLF001
    assert heard == ["all", "all", job, "a", job]
    assert [one.getMessage() for one in caplog.records] == ["not a job: 'no id'"] * 2


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

    def resolve(dsn: str | None, *, embedded: bool | None) -> Any:
        resolved.append((dsn, embedded))
        return nullcontext()

    app = SimpleNamespace(dsn="postgresql://app@h/d", embedded=False)
    monkeypatch.setattr(entry, "set_up_logging", lambda *form: ran.append("/".join(form)))
    monkeypatch.setattr(entry, "load", lambda _: app)
    monkeypatch.setattr(entry, "resolve", resolve)
    monkeypatch.setattr(entry, "Supervisor", Supervised)
    monkeypatch.setattr(entry, "run_one", lambda _: ran.append("one") or 4)
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
        Looker("", "w", None, [], executor=nothing, roster=roster, position=nothing),
    ]
    for part in parts:
        await part.close()
    assert closed == [f"trunkline {name}" for name in ("claimer", "completer", "duties", "looker")]
    assert logging.getLogger("trunkline.worker.looker") is parts[3].log
