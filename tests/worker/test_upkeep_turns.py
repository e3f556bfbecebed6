"""Rescan, duties and heartbeats, turn by turn: what they ask and what they do next; no database."""

import asyncio
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tests.worker.engine import Engine
from tests.worker.scene import a_job, eventually, held_job
from trunkline.db.calls.work import Claimed
from trunkline.errors import ConnectionLost, SchemaNewerThanClient
from trunkline.model import GONE, Verdict
from trunkline.schema.contract import CONTRACT
from trunkline.worker.duties import Duties
from trunkline.worker.heartbeats import Heartbeats
from trunkline.worker.part import Part
from trunkline.worker.rescan import Rescan
from trunkline.worker.roster import HeldJob, Roster, Stop


@dataclass
class Runners:
    wanted: int = 20
    accepting: bool = True
    submitted: list[HeldJob] = field(default_factory=list)

    def demand(self) -> int:
        return self.wanted

    def submit(self, held: list[HeldJob]) -> None:
        self.submitted += held


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long parts paused; they do not wait."""
    seen: list[float] = []

    async def pause(_: Part, seconds: float) -> None:
        seen.append(seconds)

    monkeypatch.setattr(Part, "pause", pause)
    monkeypatch.setattr("random.uniform", lambda _low, _high: 1.0)
    return seen


class Look:
    def __init__(self) -> None:
        self.runners = Runners()
        self.roster = Roster()
        self.took: list[float] = []
        runners: Any = self.runners
        self.rescan = Rescan(
            "",
            "w",
            ("q",),
            ["t"],
            executor=runners,
            roster=self.roster,
            position=lambda: '{"p": 1}',
            on_scan=self.took.append,
        )


async def test_a_late_scan_claims_behind_the_position_and_hands_its_jobs_over(
    engine: Engine, pauses: list[float]
) -> None:
    look = Look()
    job = a_job()

    def claim(*_: Any) -> Claimed:
        assert look.roster.rescanning
        return Claimed([job], "{}")

    engine.say("claim", claim)
    await look.rescan.turn()
    assert engine.calls == [("claim", ("w", ["q"], 10, ["t"], '{"behind": {"p": 1}}', None))]
    assert engine.patience == [60.0]
    assert pauses == [10.0]
    assert [held.job for held in look.runners.submitted] == [job]
    assert look.roster.get(job.job_id) is look.runners.submitted[0]
    assert not look.roster.rescanning
    assert not look.roster.checks
    assert len(look.took) == 1
    assert look.took[0] >= 0


async def test_a_slow_late_scan_is_followed_by_a_long_pause(
    engine: Engine, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((100.0, 103.0, 200.0, 200.0))
    monkeypatch.setattr("trunkline.worker.rescan.time", SimpleNamespace(monotonic=times.__next__))
    engine.say("claim", Claimed([], None))
    look = Look()
    await look.rescan.turn()
    await look.rescan.turn()
    assert look.took == [3.0, 0.0]
    assert pauses == [10.0, 60.0]
    assert look.runners.submitted == []
    assert engine.taken() == ["claim", "claim"]


@pytest.mark.parametrize("why", ["no runner is free", "forgotten jobs are released", "stopping"])
async def test_there_is_no_late_scan_if(engine: Engine, pauses: list[float], why: str) -> None:
    look = Look()
    if why == "no runner is free":
        look.runners.wanted = 0
    elif why == "stopping":
        look.rescan.stopping.set()
    else:
        look.roster.releasing = True
    await look.rescan.turn()
    assert engine.calls == []


async def test_fewer_free_runners_are_asked_for(engine: Engine, pauses: list[float]) -> None:
    look = Look()
    look.runners.wanted = 2
    engine.say("claim", Claimed([], None))
    await look.rescan.turn()
    assert engine.calls[0][1][2] == 2


async def test_a_late_scan_whose_answer_is_lost_is_checked(
    engine: Engine, pauses: list[float]
) -> None:
    look = Look()
    engine.say("claim", ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        await look.rescan.turn()
    assert len(look.roster.checks) == 2
    assert not look.roster.rescanning
    assert look.took == []


async def test_a_late_scan_that_is_dropped_at_the_end_is_checked(
    engine: Engine, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Look()

    async def dropped(_: Part, work: Any, *, grace: float = 0.0) -> None:
        work.close()
        assert grace == 2.0

    monkeypatch.setattr(Part, "unless_stopping", dropped)
    await look.rescan.turn()
    assert len(look.roster.checks) == 2
    assert look.took == []


async def test_jobs_of_a_late_scan_at_the_end_are_released_unstarted(
    engine: Engine, pauses: list[float]
) -> None:
    look = Look()
    look.runners.accepting = False
    jobs = [a_job(attempt=2), a_job(attempt=3)]
    engine.say("claim", Claimed(jobs, "{}"))
    await look.rescan.turn()
    assert engine.calls[1] == (
        "release",
        ("w", [job.job_id for job in jobs], [2, 3], "shutting down", True),
    )
    assert len(look.roster) == 0
    assert look.runners.submitted == []


def _duty(name: str, *, rows: int = 0, ran: bool = True, error: Any = None) -> Any:
    return SimpleNamespace(duty=name, rows=rows, ran=ran, error=error)


async def test_duties_log_what_they_did_and_wait_five_seconds(
    engine: Engine, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    duties = Duties("", pulse=3.0)
    engine.say(
        "run_duties",
        [
            _duty("a", rows=2),
            _duty("b"),
            _duty("c", rows=4, ran=False),
            _duty("d", error={"message": "bad"}),
        ],
    )
    await duties.turn()
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == [
        (logging.DEBUG, "duty a: 2 rows"),
        (logging.ERROR, "duty d failed: {'message': 'bad'}"),
    ]
    assert engine.patience == [120.0]
    assert pauses == [5.0]
    await duties.turn()
    assert pauses == [5.0, 5.0]


async def test_a_called_duty_runs_at_once_and_others_are_ignored(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    duties = Duties("", pulse=3.0)

    async def forever(_self: Duties, _seconds: float) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Duties, "pause", forever)
    engine.say("run_duties", [])
    engine.say("run_duty", _duty("expand_workflows", rows=3))
    turn = asyncio.ensure_future(duties.turn())
    while engine.calls == []:
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    duties.call("maintain_partitions")
    for _ in range(10):
        await asyncio.sleep(0)
    assert not turn.done()
    duties.call("expand_workflows")
    await turn
    turn = asyncio.ensure_future(duties.turn())
    while len(engine.calls) < 3:
        await asyncio.sleep(0)
    assert engine.calls == [
        ("run_duties", ()),
        ("run_duty", ("expand_workflows",)),
        ("run_duties", ()),
    ]
    turn.cancel()


async def test_after_an_error_duties_wait_for_two_pulses_first(
    engine: Engine, pauses: list[float]
) -> None:
    duties = Duties("", pulse=3.0)
    engine.say("run_duties", ConnectionLost("gone"), [])
    with pytest.raises(ConnectionLost):
        await duties.turn()
    assert pauses == []
    await duties.turn()
    assert pauses == [7.0, 5.0]
    await duties.turn()
    assert pauses == [7.0, 5.0, 5.0]
    engine.say("run_duties", ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        await duties.turn()
    duties.stopping.set()
    engine.taken()
    await duties.turn()
    assert engine.taken() == []


class Beats:
    """A heart, with what it told its worker."""

    def __init__(self, *, every: float = 3600.0) -> None:
        self.roster = Roster()
        self.told: list[tuple[Any, ...]] = []
        self.threads: set[int] = set()
        self.heart = Heartbeats(
            "",
            "w",
            self.roster,
            every=every,
            detail=self._detail,
            stop_job=lambda held, stop: self.told.append((held, stop)),
            on_state=lambda state: self.told.append((state,)),
            on_outdated=lambda error: self.told.append((error.code, error.hint)),
        )

    def _detail(self) -> Mapping[str, Any]:
        return {"a": 1}

    def hold(self, *, due: bool, now: bool = False) -> HeldJob:
        held = held_job()
        held.beat_now = now
        if due:
            held.last_beat -= 1000
        self.roster._held[held.job.job_id] = held  # noqa: SLF001
        return held


def _pulse(state: str = "active", *, contract: int = CONTRACT, oldest: int = CONTRACT) -> Any:
    return SimpleNamespace(state=state, version=1, contract=contract, oldest_contract=oldest)


async def test_one_heartbeat_is_for_all_that_are_due(engine: Engine) -> None:
    beats = Beats()
    engine.say("pulse", _pulse())
    due, asked = beats.hold(due=True), beats.hold(due=False, now=True)
    resting, lost = beats.hold(due=False), beats.hold(due=True)
    before = resting.last_beat
    engine.say(
        "heartbeat",
        [
            Verdict(due.job.job_id, 1, "ok", "running", None),
            Verdict(asked.job.job_id, 1, "cancel", "running", None),
            Verdict(lost.job.job_id, 1, "lost", GONE, None),
        ],
    )
    beats.heart.start()
    await eventually(lambda: len(beats.told) == 2, "the verdicts are told")
    await beats.heart.stop()
    beat = [sent for name, sent in engine.calls if name == "heartbeat"]
    jobs = [held.job.job_id for held in (due, asked, lost)]
    assert beat == [("w", jobs, [1, 1, 1])]
    assert beats.told == [(asked, Stop.CANCELLED), (lost, Stop.LOST)]
    assert (lost.gone, due.gone, asked.beat_now) == (True, False, False)
    assert due.last_beat == asked.last_beat > before
    assert resting.last_beat == before
    assert [name for name, _ in engine.calls].count("pulse") == 1
    assert engine.patience == [3600.0] * 2


async def test_a_job_taken_over_is_not_gone(engine: Engine) -> None:
    beats = Beats()
    engine.say("pulse", _pulse())
    held = beats.hold(due=True)
    held.gone = True
    engine.say("heartbeat", [Verdict(held.job.job_id, 1, "lost", "running", None)])
    beats.heart.start()
    await eventually(lambda: beats.told, "the verdict is told")
    await beats.heart.stop()
    assert not held.gone


@pytest.mark.parametrize("state", ["draining", "stopped"])
async def test_the_heart_reports_a_state_that_is_not_active(engine: Engine, state: str) -> None:
    beats = Beats(every=1.0)
    engine.say("pulse", _pulse(state))
    beats.heart.start()
    await eventually(lambda: beats.told, "the state is told")
    await beats.heart.stop()
    assert beats.told[0] == (state,)
    assert engine.patience[0] == 2.0


async def test_the_heart_reports_once_that_the_schema_is_too_new(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    beats = Beats()
    engine.say("pulse", _pulse(contract=CONTRACT + 1, oldest=CONTRACT + 1))
    engine.say("schema_release", "9.9")
    beats.heart.start()
    await eventually(lambda: beats.told, "it is told")
    await beats.heart.stop()
    ((code, hint),) = beats.told
    assert code == SchemaNewerThanClient.code
    assert "9.9" in hint
    assert [name for name, _ in engine.calls].count("pulse") == 1
    assert f"({code})" in caplog.text


async def test_a_question_without_an_answer_is_asked_again(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    beats = Beats()
    engine.say("pulse", _pulse())
    asked, due = beats.hold(due=False, now=True), beats.hold(due=True)
    seen: list[bool] = []

    def heartbeat(*_: Any) -> list[Verdict]:
        seen.append(asked.beat_now)
        if len(seen) == 1:
            raise ConnectionLost("gone")
        return []

    engine.say("heartbeat", heartbeat)
    beats.heart.start()
    await eventually(lambda: len(seen) == 2 and not asked.beat_now, "it is asked again")
    await beats.heart.stop()
    assert seen == [False, False]
    assert not due.beat_now
    beaten = [sent[1] for name, sent in engine.calls if name == "heartbeat"]
    assert beaten == [[asked.job.job_id, due.job.job_id]] * 2
    assert caplog.messages.count("heartbeats: gone (connection_lost)") == 1


async def test_a_stopped_heart_leaves_no_thread(engine: Engine) -> None:
    beats = Beats()
    engine.say("pulse", _pulse())
    await beats.heart.stop()
    other = Beats()
    other.heart.start()
    await eventually(lambda: engine.calls, "it beats")
    await other.heart.stop()
    assert not [one for one in threading.enumerate() if one.name == "trunkline heartbeats"]
    await asyncio.sleep(0)
