"""A blocked loop, the end of a worker and what it hears; without a database."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tests.worker.scene import held_job
from trunkline.db.listener import CANCEL, DUTIES, WAKE, Listener
from trunkline.errors import (
    ConnectionLost,
)
from trunkline.worker import heartbeats
from trunkline.worker.heartbeats import Heartbeats
from trunkline.worker.part import Part
from trunkline.worker.report import End
from trunkline.worker.roster import Roster, Stop
from trunkline.worker.shutdown import Shutdown
from trunkline.worker.wakeup import Wakeup


class Blocked:
    """Heartbeats whose loop and thread ran last at times that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, roster: Roster) -> None:
        self.now = 100.0
        monkeypatch.setattr(heartbeats, "time", SimpleNamespace(monotonic=lambda: self.now))

        def nothing(*_: Any) -> None: ...

        self.heartbeats = Heartbeats(
            *("", "w", roster),
            every=5.0,
            detail=dict,
            stop_job=nothing,
            on_state=nothing,
            on_outdated=nothing,
        )

    def look(self, at: float, *, own: float = 0.25) -> None:
        self.heartbeats._last_check = at - own  # noqa: SLF001
        self.now = at
        self.heartbeats._check_loop()  # noqa: SLF001


async def test_a_blocked_loop_is_logged_when_it_is_long_and_again_when_doubled(
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
    assert "blocked for 4.0 s by code that is not a handler" in caplog.messages[-1]
    # The loop came around: the next time is told from the start.
    blocked.heartbeats._tick_at = 104.5  # noqa: SLF001
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
    assert "_check_loop" in record.getMessage()
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
    monkeypatch.setattr("trunkline.worker.shutdown._CHECK_EVERY", 0.001)
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
        "1 job did not end; each returns when its lease expires",
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
    assert worked == [1]  # type: ignore[unreachable]
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
    assert caplog.records[0].getMessage().startswith("no notifications arrive over this connection")
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
    here = Wakeup(
        "",
        queues=("a",),
        on_work=lambda: heard.append("a"),
        on_cancel=heard.append,
        on_duty=heard.append,
    )
    job = uuid4()
    for wakeup in (everywhere, here):
        for channel, payload in (
            *((WAKE, "a"), (WAKE, "b"), (CANCEL, str(job)), (CANCEL, "no id"), ("x", "a")),
            (DUTIES, "expand_workflows"),
        ):
            wakeup._act(channel, payload)  # noqa: SLF001
    assert heard == ["all", "all", job, "a", job, "expand_workflows"]
    expected = "ignored a notification that is not a job id: 'no id'"
    assert [record.getMessage() for record in caplog.records] == [expected] * 2
