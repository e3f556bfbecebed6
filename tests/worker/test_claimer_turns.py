"""What a claimer asks of the engine, turn by turn, and how long it waits; without a database."""

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.engine import Clock, Engine
from tests.worker.scene import a_job
from trunkline.db.calls.work import Claimed
from trunkline.errors import ConnectionLost
from trunkline.worker.claimer import Claimer
from trunkline.worker.roster import HeldJob, Roster

_NOTHING = Claimed([], None)


@dataclass
class Runners:
    """The executor's side: how many jobs it wants."""

    wanted: int = 3
    limited: int = 100
    submitted: list[HeldJob] = field(default_factory=list)

    def demand(self) -> int:
        return self.wanted

    def limited_demand(self) -> int:
        return self.limited

    def submit(self, held: list[HeldJob]) -> None:
        self.submitted += held


class Desk:
    """A claimer with everything around it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine = Engine(monkeypatch)
        self.clock = Clock(monkeypatch, "trunkline.worker.claimer")
        monkeypatch.setattr("trunkline.worker.roster.time", self.clock)
        monkeypatch.setattr("trunkline.worker.pace._JITTER", 0.0)
        monkeypatch.setattr("trunkline.worker.pace._LATE_COMMITS", ())
        self.runners = Runners()
        self.roster = Roster()
        self.notified = True
        runners: Any = self.runners
        self.claimer = Claimer(
            "",
            "w",
            ("b", "a"),
            ["t"],
            executor=runners,
            roster=self.roster,
            is_notified=lambda: self.notified,
        )
        self.engine.say("claim", _NOTHING)

    def claims(self) -> list[tuple[Any, ...]]:
        return [parameters for name, parameters in self.engine.calls if name == "claim"]

    async def fall_asleep(self) -> None:
        """Two turns without work: the flag is set, and the queue was looked at once more."""
        await self.claimer.turn()
        await self.claimer.turn()
        self.engine.calls.clear()
        self.clock.waits.clear()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def _pending(waiting: Awaitable[None]) -> asyncio.Task[None]:
    task = asyncio.ensure_future(waiting)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_an_idle_claimer_sets_its_flag_claims_again_and_waits_ever_longer(desk: Desk) -> None:
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim", "sleep"]
    assert desk.clock.waits == []
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim"]
    assert desk.clock.waits == [5.0]
    # A wait that ran to its end renews the flag, for the next due time.
    for wait in (10.0, 20.0, 30.0, 30.0):
        await desk.claimer.turn()
        assert desk.engine.taken() == ["claim", "sleep"]
        assert desk.clock.waits[-1] == wait


async def test_without_notifications_it_claims_every_second(desk: Desk) -> None:
    desk.notified = False
    await desk.fall_asleep()
    await desk.claimer.turn()
    await desk.claimer.turn()
    assert desk.clock.waits == [1.0, 1.0]


async def test_a_claim_names_worker_queues_tasks_and_place(desk: Desk) -> None:
    desk.engine.say("claim", Claimed([a_job()], '{"p": 1}'), Claimed([], '{"p": 2}'), _NOTHING)
    for _ in range(3):
        await desk.claimer.turn()
    # Without a flag it goes on from its place; an answer without a place keeps the last one.
    assert desk.claims() == [
        ("w", ["b", "a"], 3, ["t"], "{}", 3),
        ("w", ["b", "a"], 3, ["t"], '{"p": 1}', 3),
        ("w", ["b", "a"], 3, ["t"], None, 3),
    ]
    assert desk.claimer.position == '{"p": 2}'


async def test_a_claim_is_bounded_and_limited_jobs_separately(desk: Desk) -> None:
    desk.runners.wanted, desk.runners.limited = 5000, 7
    await desk.claimer.turn()
    assert desk.claims()[0][2] == 1000
    assert desk.claims()[0][5] == 7


async def test_after_a_full_claim_it_goes_on_from_its_place(desk: Desk) -> None:
    await desk.fall_asleep()
    desk.engine.say("claim", Claimed([a_job() for _ in range(3)], '{"p": 1}'))
    await desk.claimer.turn()
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim", "claim"]
    assert desk.clock.waits == []
    assert len(desk.runners.submitted) == 6
    assert len(desk.roster) == 3
    assert desk.claimer.position == '{"p": 1}'


@pytest.mark.parametrize(
    ("limited", "taken", "again"),
    [(2, 2, True), (2, 1, False), (3, 2, False), (0, 0, True)],
)
async def test_a_claim_that_took_all_limited_jobs_it_could_may_have_left_others(
    desk: Desk, limited: int, taken: int, again: bool
) -> None:
    await desk.fall_asleep()
    desk.runners.limited = limited
    job = a_job()
    limited_job = job._replace(start_by=job.claimed_at + timedelta(seconds=1))
    jobs = [limited_job] * taken or [job]
    desk.engine.say("claim", Claimed(jobs, "{}"))
    await desk.claimer.turn()
    assert (desk.clock.waits == []) is again


async def test_after_a_single_job_it_waits_for_news_without_another_claim(desk: Desk) -> None:
    await desk.fall_asleep()
    desk.engine.say("claim", Claimed([a_job()], "{}"), _NOTHING)
    await desk.claimer.turn()
    # The wait before it had run out, so the flag is renewed; the pace starts over.
    assert desk.engine.taken() == ["claim", "sleep"]
    assert desk.clock.waits == [5.0]


@pytest.mark.parametrize("notified", [True, False])
async def test_a_free_runner_wakes_it_unless_news_would_come(desk: Desk, notified: bool) -> None:
    await desk.fall_asleep()
    desk.notified = notified
    desk.clock.meanwhile = lambda: None
    waiting = await _pending(desk.claimer.turn())
    desk.claimer.wake()
    for _ in range(5):
        await asyncio.sleep(0)
    assert waiting.done() is not notified
    desk.claimer.interrupt()
    await waiting


async def test_without_a_free_runner_it_waits_until_there_is_one(desk: Desk) -> None:
    await desk.fall_asleep()
    desk.runners.wanted = 0
    waiting = await _pending(desk.claimer.turn())
    desk.claimer.wake()
    await waiting
    assert desk.engine.taken() == []


async def test_a_wish_from_before_the_turn_is_dropped(desk: Desk) -> None:
    desk.runners.wanted = 0
    desk.claimer.interrupt()
    waiting = await _pending(desk.claimer.turn())
    desk.claimer.interrupt()
    await waiting


async def test_news_renew_the_flag_soon_but_not_each_time(desk: Desk) -> None:
    await desk.fall_asleep()
    await desk.claimer.turn()
    desk.engine.calls.clear()
    desk.clock.waits.clear()
    # Renewed a moment ago, then a notification: first a short wait, then the flag.
    desk.clock.meanwhile = desk.claimer.hear
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim", "sleep"]
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim"]
    assert desk.clock.waits[-1] == 0.1
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim", "sleep"]
    assert desk.clock.waits[-1] > 1


async def test_it_waits_no_longer_than_until_the_next_job_is_due(desk: Desk) -> None:
    desk.engine.say("sleep", 2.0)
    await desk.claimer.turn()
    desk.clock.now += 0.5
    await desk.claimer.turn()
    assert desk.clock.waits == [1.5]
    desk.engine.say("sleep", 0.0)
    await desk.claimer.turn()
    assert desk.clock.waits[-1] == 0.001
    desk.engine.say("sleep", 3600.0)
    await desk.claimer.turn()
    assert desk.clock.waits[-1] <= 30.0


async def test_it_waits_no_longer_than_until_the_next_check(desk: Desk) -> None:
    await desk.fall_asleep()
    desk.roster.checks = [desk.clock.now + 3.0]
    await desk.claimer.turn()
    assert desk.clock.waits == [3.0]
    desk.roster.checks = [desk.clock.now + 0.2]
    await desk.claimer.turn()
    assert desk.clock.waits[-1] == 1.0


async def test_the_flag_is_taken_down_after_a_second_of_work(desk: Desk) -> None:
    await desk.fall_asleep()
    desk.engine.say("claim", Claimed([a_job() for _ in range(3)], "{}"))
    for _ in range(3):
        await desk.claimer.turn()
        desk.clock.now += 0.6
    assert desk.engine.taken() == ["claim", "claim", "claim", "wake"]
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim"]


@pytest.mark.parametrize(("pause", "woken"), [(0.004, True), (0.006, False)])
async def test_a_pause_begins_the_second_again(desk: Desk, pause: float, woken: bool) -> None:
    await desk.fall_asleep()
    full = Claimed([a_job() for _ in range(3)], "{}")
    desk.engine.say("claim", full, _NOTHING, full)
    await desk.claimer.turn()

    def later() -> None:
        desk.clock.now += pause
        desk.claimer.interrupt()

    desk.clock.meanwhile = later
    await desk.claimer.turn()
    desk.clock.now += 1.5
    await desk.claimer.turn()
    assert ("wake" in desk.engine.taken()) is woken


@pytest.mark.parametrize(("seconds", "kept"), [(0.019, False), (0.021, True)])
async def test_a_slow_scan_keeps_the_position_for_a_minute(
    desk: Desk, seconds: float, kept: bool
) -> None:
    await desk.fall_asleep()

    def slow(*_: Any) -> Claimed:
        desk.clock.now += seconds
        return Claimed([], '{"p": 1}')

    desk.engine.say("claim", slow, _NOTHING)
    await desk.claimer.turn()
    await desk.claimer.turn()
    places = [claim[4] for claim in desk.claims()]
    assert places == [None, '{"p": 1}' if kept else None]
    desk.clock.now += 61
    await desk.claimer.turn()
    assert desk.claims()[-1][4] is None


async def test_a_scan_of_exactly_the_bound_is_not_slow(desk: Desk) -> None:
    desk.engine.say("claim", Claimed([], '{"p": 1}'))
    await desk.fall_asleep()
    desk.claimer.note_scan(0.02)
    await desk.claimer.turn()
    assert desk.claims()[-1][4] is None
    desk.claimer.note_scan(0.03)
    await desk.claimer.turn()
    assert desk.claims()[-1][4] == '{"p": 1}'


async def test_a_wait_that_runs_out_begins_the_second_of_work_again(desk: Desk) -> None:
    await desk.fall_asleep()
    full = Claimed([a_job() for _ in range(3)], "{}")
    desk.engine.say("claim", full, _NOTHING, full)
    await desk.claimer.turn()
    await desk.claimer.turn()
    desk.clock.now += 2.0
    await desk.claimer.turn()
    assert "wake" not in desk.engine.taken()


async def test_a_worker_that_falls_asleep_soon_scans_for_late_commits(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.pace._LATE_COMMITS", (0.5, 0.7))
    for _ in range(3):
        await desk.claimer.turn()
    assert desk.clock.waits == [0.5, 0.7]


async def test_a_lost_answer_drops_position_and_flag_and_is_checked(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.fall_asleep()
    lost = ConnectionLost("gone")
    desk.engine.say("claim", Claimed([a_job() for _ in range(3)], '{"p": 1}'), lost, _NOTHING)
    await desk.claimer.turn()
    with pytest.raises(ConnectionLost):
        await desk.claimer.turn()
    assert desk.claimer.position == "{}"
    assert desk.roster.checks == [desk.clock.now, desk.clock.now + 10.0]
    desk.engine.calls.clear()
    known = [held.job.job_id for held in desk.roster]
    desk.engine.say("release_forgotten", 2, 0)
    await desk.claimer.turn()
    assert [name for name, _ in desk.engine.calls] == ["release_forgotten", "claim", "sleep"]
    assert desk.engine.calls[0][1] == ("w", known)
    assert desk.roster.releasing is False
    said = [one.getMessage() for one in caplog.records if one.levelno == logging.INFO]
    assert said == ["handed back 2 jobs of a claim whose answer was lost"]
    # The second check waits for its time, and says nothing of nothing.
    desk.engine.taken()
    await desk.claimer.turn()
    assert "release_forgotten" not in desk.engine.taken()
    desk.clock.now += 10
    await desk.claimer.turn()
    assert desk.engine.taken()[0] == "release_forgotten"
    assert desk.roster.checks == []
    assert len([one for one in caplog.records if one.levelno == logging.INFO]) == 1


async def test_no_check_while_another_claim_is_under_way(desk: Desk) -> None:
    desk.roster.checks = [desk.clock.now - 1]
    desk.roster.rescanning = True
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim", "sleep"]
    desk.roster.rescanning = False
    seen: list[bool] = []

    def check(*_: Any) -> int:
        seen.append(desk.roster.releasing)
        raise ConnectionLost("gone")

    desk.engine.say("release_forgotten", check)
    with pytest.raises(ConnectionLost):
        await desk.claimer.turn()
    assert seen == [True]
    assert desk.roster.releasing is False


async def test_a_worker_that_was_declared_dead_sets_its_flag_again(desk: Desk) -> None:
    await desk.fall_asleep()
    desk.clock.meanwhile = desk.claimer.reset_sleep
    await desk.claimer.turn()
    desk.engine.taken()
    await desk.claimer.turn()
    assert desk.engine.taken() == ["claim", "sleep"]
    assert len(desk.clock.waits) == 1
