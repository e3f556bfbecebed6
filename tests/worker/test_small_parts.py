"""Frames, locks, watch, memory and the bounds of the executor; without a database."""

import asyncio
import logging
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.worker.scene import a_job, eventually, held_job, no_services
from trunkline import Trunkline
from trunkline.errors import PayloadMismatch, WrongResult
from trunkline.worker import memory
from trunkline.worker import worker as module
from trunkline.worker.executor import Executor
from trunkline.worker.frames import Ended, Progress, Verdict, pack, receive, receive_async, send
from trunkline.worker.memory import Memory
from trunkline.worker.options import WorkerOptions
from trunkline.worker.part import Part
from trunkline.worker.report import End, of_error
from trunkline.worker.roster import HeldJob, Roster, Stop
from trunkline.worker.threads import Threads
from trunkline.worker.watch import Watch
from trunkline.worker.worker import Worker


def test_messages_arrive_whole_however_they_are_cut() -> None:
    ours, theirs = socket.socketpair()
    messages: list[Any] = [
        Progress(5, "x" * 100_000, None),
        Ended("complete", result="1"),
        Verdict("ok"),
    ]
    with ours, theirs:

        def say_all() -> None:
            for message in messages:
                send(ours, message)

        sending = threading.Thread(target=say_all)
        sending.start()
        assert [receive(theirs) for _ in messages] == messages
        sending.join(60)
        whole = pack(messages[1])
        for part in (whole[:1], whole[1:6], whole[6:]):
            ours.sendall(part)
        assert receive(theirs) == messages[1]
        # Cut off in the middle of a length, and of a body.
        ours.sendall(whole[:-1])
        ours.shutdown(socket.SHUT_WR)
        assert receive(theirs) is None
        assert receive(theirs) is None


async def test_messages_arrive_in_an_event_loop() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(pack(Verdict("a")) + pack(Verdict("b"))[:5])
    assert await receive_async(reader) == Verdict("a")
    reader.feed_data(pack(Verdict("b"))[5:])
    assert await receive_async(reader) == Verdict("b")
    reader.feed_data(pack(Verdict("c"))[:-1])
    reader.feed_eof()
    assert await receive_async(reader) is None
    broken = asyncio.StreamReader()
    broken.set_exception(ConnectionResetError())
    assert await receive_async(broken) is None


class Guarded(dict[Any, Any]):
    """Jobs that may change only under a lock."""

    lock: threading.Lock

    def __setitem__(self, key: Any, value: Any) -> None:
        assert self.lock.locked()
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        assert self.lock.locked()
        super().__delitem__(key)


def test_a_roster_changes_under_its_lock_and_returns_replaced_attempts() -> None:
    roster = Roster()
    guarded = Guarded()
    guarded.lock = roster._lock  # noqa: SLF001
    roster._held = guarded  # noqa: SLF001
    replaced: list[HeldJob] = []
    first, other = a_job(), a_job()
    (held, _) = roster.add([first, other])
    roster.add([first._replace(attempt=2)])
    roster.on_replaced = replaced.append
    (third,) = roster.add([first._replace(attempt=3)])
    assert [one.job.attempt for one in replaced] == [2]
    assert roster.get(first.job_id) is third
    assert held is not third
    roster.remove([first, other])
    assert list(roster) == [third]


class Counting(Threads):
    """Counts its idle threads only under the lock."""

    @property
    def _idle(self) -> int:
        return self._count

    @_idle.setter
    def _idle(self, value: int) -> None:
        assert not hasattr(self, "_lock") or self._lock.locked()
        self._count = value


async def test_threads_are_counted_under_a_lock() -> None:
    threads = Counting(2)
    for number in range(3):
        assert await threads.run(lambda number: number, number) == number
    threads.close()


class Busy:
    """The executor's side of the watch."""

    def __init__(self) -> None:
        self.stopped: list[Any] = []
        self.unstarted: list[HeldJob] = []
        self.last_start = 1000.0
        self.slowed = 0

    def stop_job(self, held: HeldJob, stop: Stop) -> None:
        self.stopped.append((held, stop))

    @property
    def next_unstarted(self) -> HeldJob | None:
        return self.unstarted[0] if self.unstarted else None

    def take_unstarted(self) -> list[HeldJob]:
        return self.unstarted

    def slow_down(self) -> None:
        self.slowed += 1


@pytest.fixture
def at_1000(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Parts do not pause, and the watch looks at this time."""
    pauses: list[float] = []

    async def pause(_: Part, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(Part, "pause", pause)
    clock = SimpleNamespace(monotonic=lambda: 1000.0)
    monkeypatch.setattr("trunkline.worker.watch.time", clock)
    return pauses


async def test_the_watch_stops_what_is_over_its_limit(
    at_1000: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    roster, busy = Roster(), Busy()
    jobs = {}
    for name, started, deadline, stop in (
        ("over", 1.0, 1000.0, None),
        ("in time", 1.0, 1000.1, None),
        ("not started", None, 1.0, None),
        ("stopped", 1.0, 1.0, Stop.CANCELLED),
    ):
        held = jobs[name] = held_job(name)
        held.started, held.stop = started, stop
        held._limits = (1.0, deadline)  # noqa: SLF001
        roster._held[held.job.job_id] = held  # noqa: SLF001
    executor: Any = busy
    await Watch(roster, executor, lambda _: None).turn()
    assert at_1000 == [0.25]
    assert busy.stopped == [(jobs["over"], Stop.HARD_LIMIT)]
    (record,) = caplog.records
    assert record.getMessage() == f"job {jobs['over'].job.job_id} of over reached its hard limit"
    assert record.levelno == logging.WARNING


@pytest.mark.parametrize(
    ("buffered", "last_start", "hands_back"),
    [(2, 998.9, True), (2, 999.1, False), (0, 1.0, False)],
)
async def test_the_watch_hands_back_what_does_not_start(
    at_1000: list[float],
    caplog: pytest.LogCaptureFixture,
    buffered: int,
    last_start: float,
    hands_back: bool,
) -> None:
    busy = Busy()
    busy.unstarted = [held_job("b"), held_job("a")][:buffered]
    busy.last_start = last_start
    reports: list[Any] = []
    executor: Any = busy
    watch = Watch(Roster(), executor, reports.append)
    await watch.turn()
    assert reports == []
    await watch.turn()
    assert busy.slowed == hands_back
    found = [(report.job.task, report.end, report.reason) for report in reports]
    reason = "claimed too early"
    expected = [("b", End.HAND_BACK, reason), ("a", End.HAND_BACK, reason)]
    assert found == (expected if hands_back else [])
    assert caplog.messages == (["handing back 2 jobs claimed too early"] if hands_back else [])


async def test_the_watch_leaves_a_job_to_a_runner_that_is_about_to_start_it(
    at_1000: list[float],
) -> None:
    """An idle worker started its last job long ago, and the runner may resume after the watch."""
    busy = Busy()
    busy.last_start = 1.0
    reports: list[Any] = []
    executor: Any = busy
    watch = Watch(Roster(), executor, reports.append)
    for task in ("first", "second"):
        busy.unstarted = [held_job(task)]
        await watch.turn()
    busy.unstarted = []
    await watch.turn()
    assert (reports, busy.slowed) == ([], 0)


async def test_the_watch_starts_again_when_a_job_has_started(at_1000: list[float]) -> None:
    busy = Busy()
    busy.unstarted = [held_job("a")]
    reports: list[Any] = []
    executor: Any = busy
    watch = Watch(Roster(), executor, reports.append)
    for last_start in (1.0, 999.5, 1.0):
        busy.last_start = last_start
        await watch.turn()
    assert reports == []


@pytest.mark.parametrize(("used", "told"), [(5 << 20, False), ((5 << 20) + 1, True)])
async def test_memory_over_the_limit_is_logged_and_pauses_claims(
    at_1000: list[float],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    used: int,
    told: bool,
) -> None:
    monkeypatch.setattr(memory, "resident", lambda: used)
    excess: list[int] = []
    part = Memory(5 << 20, lambda: excess.append(1))
    turn = asyncio.ensure_future(part.turn())
    for _ in range(5):
        await asyncio.sleep(0)
    assert (bool(excess), turn.done()) == (told, not told)
    part.stopping.set()
    await asyncio.wait_for(turn, 60)
    assert caplog.messages == (
        ["5 MB of memory in use, more than 5: finishing the running jobs, then restarting"]
        if told
        else []
    )
    again = Memory(1, lambda: excess.append(2))
    again.stopping.set()
    await again.turn()
    assert 2 not in excess


def test_memory_is_estimated_where_the_system_does_not_report_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    statm = tmp_path / "statm"
    statm.write_text("9 3 1")
    monkeypatch.setattr(memory, "_STATM", statm)
    assert memory.resident() == 3 * 4096
    for text in ("", "9", "x y"):
        statm.write_text(text)
        assert memory.resident() > 1 << 20
    statm.unlink()
    assert memory.resident() > 1 << 20


class Paced(Executor):
    """An executor in the middle of its work."""

    def at(self, *, idle: int, buffered: int, average: float) -> int:
        loop = asyncio.get_running_loop()
        self._idle.extend(loop.create_future() for _ in range(idle))
        self._buffer.extend([held_job()] * buffered)
        self._average = average
        return self.demand()


def _paced(concurrency: int = 10) -> Paced:
    tasks = Trunkline("postgresql://nobody@nowhere/none").tasks
    ignore: Any = lambda *_: None  # noqa: E731
    return Paced(
        *(tasks, no_services()),
        concurrency=concurrency,
        threads=None,
        report=ignore,
        on_demand=ignore,
    )


@pytest.mark.parametrize(
    ("idle", "buffered", "average", "wanted"),
    [
        # Ten runners of 10 ms jobs end 50 in the 50 ms that are claimed ahead.
        (0, 0, 0.01, 50),
        (10, 0, 0.01, 60),
        (0, 25, 0.01, 25),
        (0, 26, 0.01, 0),
        (0, 50, 0.01, 0),
        (0, 60, 0.01, 0),
        (10, 0, 1.0, 10),
        (3, 1, 1.0, 2),
        (0, 0, 1.0, 0),
        (0, 0, 0.00001, 2000),
    ],
)
async def test_jobs_are_claimed_ahead_in_batches(
    idle: int, buffered: int, average: float, wanted: int
) -> None:
    paced = _paced()
    assert paced.at(idle=idle, buffered=buffered, average=average) == wanted
    paced.accepting = False
    assert paced.demand() == 0


async def test_a_worker_that_slows_down_claims_nothing_ahead() -> None:
    paced = _paced()
    assert paced.at(idle=0, buffered=0, average=0.01) == 50
    paced._limited_average = 0.01  # noqa: SLF001
    paced.slow_down()
    assert paced.demand() == paced.limited_demand() == 0
    paced._average = paced._limited_average = 7.0  # noqa: SLF001
    paced.slow_down()
    assert (paced._average, paced._limited_average) == (7.0, 7.0)  # noqa: SLF001


async def test_jobs_start_in_idle_runners_and_the_rest_waits() -> None:
    paced = _paced()
    paced.at(idle=2, buffered=0, average=1.0)
    waiters = list(paced._idle)  # noqa: SLF001
    waiters[0].cancel()
    paced.submit([held_job(name) for name in ("c", "a", "b")])
    assert [waiter.done() for waiter in waiters] == [True, True]
    assert paced.buffered == 3
    assert [held.job.task for held in paced.take_unstarted()] == ["c", "a", "b"]
    assert paced.buffered == 0


@pytest.mark.parametrize(("concurrency", "size"), [(1, 4), (4, 4), (7, 7), (20, 20), (500, 20)])
async def test_handlers_have_a_few_connections_however_many_run(
    monkeypatch: pytest.MonkeyPatch, concurrency: int, size: int
) -> None:
    sizes: list[tuple[int, str]] = []

    class Pool:
        def __init__(self, _dsn: str, *, size: int, name: str) -> None:
            sizes.append((size, name))

        def close(self) -> None: ...

    monkeypatch.setattr(module, "AsyncPool", Pool)
    monkeypatch.setattr(module, "SyncPool", Pool)
    app = Trunkline("postgresql://nobody@nowhere/none")

    @app.task
    async def work() -> None: ...

    worker = Worker(app, WorkerOptions(concurrency=concurrency, dsn="postgresql://w@h/d"))
    stack: Any = SimpleNamespace(
        enter_context=lambda resolved: resolved.__enter__(),
        push_async_callback=lambda _: None,
        callback=lambda _: None,
    )
    assert await worker._connect(stack) == "postgresql://w@h/d"  # noqa: SLF001
    assert sizes == [(size, "trunkline handlers")] * 2


def test_an_error_is_described_with_what_it_knows() -> None:
    job = a_job()
    wrong = of_error(job, WrongResult("bad", value="[1]"))
    assert wrong is not None
    assert wrong.error is not None
    assert wrong.error["value"] == "[1]"
    for field, end in (("x", End.HAND_OVER), (None, End.FAIL)):
        error = PayloadMismatch("bad")
        error.field = field
        report = of_error(job, error)
        assert report is not None
        assert report.error is not None
        assert (report.end, report.error.get("field"), report.retryable) == (end, field, False)


class Slow(Part):
    name = "slow"

    async def turn(self) -> None:
        await asyncio.Event().wait()


async def test_work_that_is_dropped_has_its_grace() -> None:
    part = Slow()
    assert await part.unless_stopping(asyncio.sleep(0, "done")) == "done"
    part.stopping.set()
    go = asyncio.Event()

    async def work() -> str:
        await go.wait()
        return "late"

    waiting = asyncio.ensure_future(part.unless_stopping(work(), grace=60.0))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    go.set()
    assert await waiting == "late"
    go.clear()
    assert await part.unless_stopping(work()) is None


async def test_a_part_whose_task_is_cancelled_ends() -> None:
    part = Slow()
    part.start()
    task = part._task  # noqa: SLF001
    assert task is not None
    await asyncio.sleep(0)
    task.cancel()
    await eventually(task.done, "it ends")
    assert task.cancelled()
