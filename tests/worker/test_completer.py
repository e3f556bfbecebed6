"""Recording the ends of attempts (TA-36)."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from tests.support.internals import rows
from tests.worker.scene import Scene, eventually
from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.db.packed import Uuids
from trunkline.errors import ConnectionLost, InvalidArgument
from trunkline.model import ClaimedJob
from trunkline.worker.completer import Completer
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Roster

_FUNCTION = re.compile(r"from trunkline\.(\w+)\(")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions of the engine that lasting connections called, in order."""
    names: list[str] = []
    original = LastingConnection.run

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        found = _FUNCTION.search(call.sql)
        names.append(found.group(1) if found else call.sql)
        return await original(self, call, **more)

    monkeypatch.setattr(LastingConnection, "run", run)
    return names


class Desk:
    """A completer and the jobs it answers for."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.roster = Roster()
        self.completer = Completer(scene.database.dsn, "w", self.roster)

    def claim(self, count: int) -> list[ClaimedJob]:
        jobs = self.scene.claim(count)
        self.roster.add(jobs)
        return jobs

    def add(self, *reports: Report) -> None:
        for report in reports:
            self.completer.add(report)

    def states(self, jobs: list[ClaimedJob]) -> list[str]:
        return [self.scene.state(job.job_id) for job in jobs]


@asynccontextmanager
async def recording(scene: Scene, *, start: bool = True) -> AsyncIterator[Desk]:
    desk = Desk(scene)
    if start:
        desk.completer.start()
    try:
        yield desk
    finally:
        await desk.completer.stop()


async def test_what_gathers_is_one_call_for_each_kind(scene: Scene, called: list[str]) -> None:
    async with recording(scene, start=False) as desk:
        jobs = desk.claim(12)
        for index, job in enumerate(jobs):
            kind = index % 4
            desk.add(
                [
                    Report(job, End.COMPLETE, result="1"),
                    Report(job, End.FAIL, error={"message": "bad"}),
                    Report(job, End.SNOOZE, delay=60.0),
                    Report(job, End.CANCEL, reason="not wanted"),
                ][kind]
            )
        assert len(desk.completer) == 12
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states(jobs) == ["completed", "scheduled", "scheduled", "cancelled"] * 3
        assert called == ["complete", "fail", "snooze", "acknowledge_cancel"]
        assert len(desk.roster) == len(desk.completer) == 0
        counts = {end: count for end, count in desk.completer.counts.items() if count}
        assert counts == {End.COMPLETE: 3, End.FAIL: 3, End.SNOOZE: 3, End.CANCEL: 3}


async def test_the_kind_that_waits_longest_goes_first(scene: Scene, called: list[str]) -> None:
    async with recording(scene, start=False) as desk:
        first, second, third = desk.claim(3)
        desk.add(
            Report(first, End.FAIL, error={"message": "bad"}),
            Report(second, End.COMPLETE),
            Report(third, End.FAIL, error={"message": "bad"}),
        )
        desk.completer.start()
        await desk.completer.drained()
    assert called == ["fail", "complete"]


async def test_each_job_gets_its_own_result(scene: Scene) -> None:
    async with recording(scene) as desk:
        jobs = desk.claim(5)
        desk.add(*(Report(job, End.COMPLETE, result=f'"{job.job_id}"') for job in jobs[:4]))
        desk.add(Report(jobs[4], End.COMPLETE))
        await desk.completer.drained()
        results = [scene.job(job.job_id).result for job in jobs]
    assert results == [*(str(job.job_id) for job in jobs[:4]), None]


@pytest.mark.parametrize("end", [End.RELEASE, End.HAND_BACK, End.SNOOZE])
async def test_jobs_come_back_each_with_its_own_reason(scene: Scene, end: End) -> None:
    """One call of the engine has one reason for all its jobs."""
    delay = 60.0 if end is End.SNOOZE else None
    async with recording(scene, start=False) as desk:
        one, other = desk.claim(2)
        desk.add(
            Report(one, end, delay=delay, reason="claimed too early"),
            Report(other, end, delay=delay, reason="deadlock or serialization failure"),
        )
        desk.completer.start()
        await desk.completer.drained()
        reasons = [scene.job(job.job_id).reason for job in (one, other)]
    assert reasons == ["claimed too early", "deadlock or serialization failure"]


def interrupted(
    monkeypatch: pytest.MonkeyPatch, *, before: bool, times: int = 1
) -> Callable[[], int]:
    """Lose the connection so many times, before or after the server did what it was asked."""
    original = LastingConnection.run
    lost = 0

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal lost
        if lost >= times:
            return await original(self, call, **more)
        lost += 1
        if not before:
            await original(self, call, **more)
        await self.close()
        raise ConnectionLost("the network is gone")

    monkeypatch.setattr(LastingConnection, "run", run)
    return lambda: lost


@pytest.mark.parametrize("before", [True, False], ids=["request lost", "answer lost"])
@pytest.mark.parametrize(
    ("end", "state"),
    [
        (End.COMPLETE, "completed"),
        (End.FAIL, "scheduled"),
        (End.SNOOZE, "scheduled"),
        (End.CANCEL, "cancelled"),
        (End.RELEASE, "ready"),
    ],
)
async def test_an_end_is_recorded_although_the_connection_was_lost(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, before: bool, end: End, state: str
) -> None:
    """TA-36: a failed completion is repeated as a completion."""
    async with recording(scene) as desk:
        (job,) = desk.claim(1)
        lost = interrupted(monkeypatch, before=before, times=2)
        desk.add(Report(job, end, error={"message": "bad"}, delay=60.0))
        await desk.completer.drained()
        assert lost() == 2
        assert desk.states([job]) == [state]
        found = scene.job(job.job_id)
        assert found.failures == (1 if end is End.FAIL else 0)
        assert len(desk.roster) == 0


async def test_a_repeated_completion_that_arrived_is_not_counted_as_stale(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """TA-36."""
    async with recording(scene) as desk:
        jobs = desk.claim(3)
        interrupted(monkeypatch, before=False)
        desk.add(*(Report(job, End.COMPLETE) for job in jobs))
        await desk.completer.drained()
        assert desk.states(jobs) == ["completed"] * 3
        assert desk.completer.stale == 0
    assert "taken over" not in caplog.text


async def test_the_work_is_not_done_again_because_its_completion_failed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TA-36, with a whole worker."""
    runs: list[int] = []
    original = LastingConnection.run
    lost = 0

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal lost
        answer = await original(self, call, **more)
        if "trunkline.complete(" in call.sql and lost < 3:
            lost += 1
            await self.close()
            raise ConnectionLost("the network is gone")
        return answer

    monkeypatch.setattr(LastingConnection, "run", run)

    @scene.app.task
    async def work(number: int) -> None:
        runs.append(number)

    async with scene.working(concurrency=2):
        jobs = [(await scene.enqueue("work", number=number))[0] for number in range(6)]
        await scene.until_ended(jobs)
    assert lost == 3
    assert sorted(runs) == list(range(6))


async def test_a_stale_end_is_refused_counted_and_logged(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-47: the losing worker's later call changes nothing."""
    async with recording(scene) as desk:
        good, stale = desk.claim(2)
        desk.add(Report(good, End.COMPLETE), Report(stale._replace(attempt=9), End.COMPLETE))
        await desk.completer.drained()
        assert desk.states([good, stale]) == ["completed", "running"]
        assert desk.completer.stale == 1
    assert f"job {stale.job_id} was taken over before attempt 9 ended" in caplog.text


async def test_the_end_of_a_job_that_no_longer_exists_is_not_called_a_take_over(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """After an asynchronous failover the last claims may be gone from the server."""
    async with recording(scene, start=False) as desk:
        gone, failed = desk.claim(2)
        for job in (gone, failed):
            scene.call(
                work.fail(
                    "w",
                    [job.job_id],
                    [job.attempt],
                    errors=[None],
                    retryable=[False],
                    delays=[None],
                )
            )
            scene.value("select trunkline.discard(p_job => %s)", job.job_id)
        desk.add(Report(gone, End.COMPLETE), Report(failed, End.FAIL, error={"message": "bad"}))
        desk.completer.start()
        await desk.completer.drained()
        assert desk.completer.stale == 2
    for job in (gone, failed):
        assert f"the server has no job {job.job_id}; the end of attempt 1" in caplog.text
    assert "taken over" not in caplog.text


async def test_an_attempt_that_receives_a_cancellation_ends_cancelled_and_spoils_no_other(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """T14: the answer came between the end of the handler and the completer's batch."""
    async with recording(scene, start=False) as desk:
        good, told, other = desk.claim(3)
        desk.add(*(Report(job, End.COMPLETE, result="1") for job in (good, told, other)))
        scene.rows("select trunkline.cancel(%s, 'changed my mind')", told.job_id)
        scene.call(work.heartbeat("w", [told.job_id], [told.attempt]))
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states([good, told, other]) == ["completed", "cancelled", "completed"]
        assert scene.job(told.job_id).result is None
        assert desk.completer.counts[End.COMPLETE] == 2
        assert desk.completer.counts[End.CANCEL] == 1
        assert (desk.completer.stale, len(desk.roster)) == (0, 0)
    assert f"job {told.job_id} was cancelled while it ran" in caplog.text


async def test_a_result_that_is_too_large_makes_its_own_job_dead_and_no_other(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.superuser.execute("select trunkline.set_setting('max_payload_bytes', '4096')")
    async with recording(scene, start=False) as desk:
        jobs = desk.claim(5)
        for index, job in enumerate(jobs):
            text = "x" * (5000 if index == 2 else 5)
            desk.add(Report(job, End.COMPLETE, result=f'"{text}"'))
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states(jobs) == ["completed", "completed", "dead", "completed", "completed"]
        found = scene.job(jobs[2].job_id)
        assert found.last_error["code"] == "payload_too_large"
        assert desk.completer.counts[End.COMPLETE] == 4
        assert desk.completer.counts[End.FAIL] == 1
        assert len(desk.roster) == 0
    assert f"the end of job {jobs[2].job_id} was refused" in caplog.text


@pytest.mark.parametrize(
    "poison",
    [
        {"end": End.COMPLETE, "result": '"\\u0000"'},
        {"end": End.COMPLETE, "result": "no json"},
        {"end": End.SNOOZE, "delay": 1e300},
        {"end": End.FAIL, "error": {"message": object()}},
    ],
    ids=["NUL", "no JSON", "a delay beyond time", "an error beyond JSON"],
)
async def test_an_end_that_can_never_be_stored_does_not_hold_up_the_others(
    scene: Scene, poison: dict[str, Any]
) -> None:
    async with recording(scene, start=False) as desk:
        good, bad, also_good = desk.claim(3)
        plain: dict[str, Any] = poison | {"result": None, "delay": 60.0, "error": {"message": "m"}}
        desk.add(Report(good, **plain), Report(bad, **poison), Report(also_good, **plain))
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states([bad]) == ["dead"]
        assert set(desk.states([good, also_good])) <= {"completed", "scheduled"}


def named(call: Call[Any]) -> list[UUID]:
    """The jobs of a call; those of a completion are packed, each behind its length."""
    given = call.parameters[1]
    if isinstance(given, Uuids):
        return [UUID(bytes=given[at : at + 16]) for at in range(24, len(given), 20)]
    return list(given)


async def test_an_end_that_is_refused_even_as_a_failure_is_left_to_its_lease(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = LastingConnection.run

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        if bad.job_id in named(call):
            raise InvalidArgument("argument is not valid")
        return await original(self, call, **more)

    async with recording(scene, start=False) as desk:
        bad, good = desk.claim(2)
        monkeypatch.setattr(LastingConnection, "run", run)
        desk.add(Report(bad, End.COMPLETE), Report(good, End.COMPLETE))
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states([bad, good]) == ["running", "completed"]
        assert len(desk.roster) == 0
    assert f"job {bad.job_id} is left to its lease" in caplog.text


async def test_an_isolated_end_is_not_recorded_twice_when_the_connection_breaks(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends before the refused one are settled; a break in between does not repeat them."""
    original = LastingConnection.run
    calls: list[list[UUID]] = []

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        calls.append(named(call))
        if len(calls) == 3:
            await self.close()
            raise ConnectionLost("gone")
        return await original(self, call, **more)

    async with recording(scene, start=False) as desk:
        one, two, bad = desk.claim(3)
        monkeypatch.setattr(LastingConnection, "run", run)
        desk.add(
            Report(one, End.COMPLETE, result="1"),
            Report(two, End.COMPLETE, result="2"),
            Report(bad, End.COMPLETE, result="no json"),
        )
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states([one, two, bad]) == ["completed", "completed", "dead"]
    assert calls.count([one.job_id]) == 1


async def test_a_thousand_ends_are_recorded_while_more_arrive(
    scene: Scene, called: list[str]
) -> None:
    async with recording(scene) as desk:
        jobs = desk.claim(900) + desk.claim(900)
        for job in jobs:
            desk.add(Report(job, End.COMPLETE))
        await desk.completer.drained()
        assert rows.count(scene.superuser, "finished") == 1800
        await eventually(lambda: desk.completer.counts[End.COMPLETE] == 1800, "all are counted")
    assert len(called) <= 4
