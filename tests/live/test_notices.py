"""Changes of a followed job notify once, with its id; those of other jobs notify nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Attempt
from tests.support.ear import LIVE, Ear
from tests.support.internals import live
from tests.workflows.flow import Flow, job

Action = Callable[[Desk, UUID], Any]


@pytest.fixture
def ear(desk: Desk) -> Ear:
    return Ear(desk.database)


def follow(desk: Desk, *ids: UUID) -> None:
    desk.producer.value("select trunkline.follow(%s)", list(ids))


def held(desk: Desk) -> Attempt:
    return Attempt(desk.producer.value("select job_id from trunkline.jobs"), 1, "w")


def fail(desk: Desk, **more: Any) -> None:
    desk.end([held(desk)], "fail", **more)


WAITING: dict[str, Action] = {
    "claim": lambda desk, _job: desk.claim(),
    "cancel": lambda desk, known: desk.producer.change("cancel", known),
    "cancel_jobs": lambda desk, _job: desk.operator.value(
        'select trunkline.cancel_jobs(\'{"task": "work"}\')'
    ),
}
RUNNING: dict[str, Action] = {
    "complete": lambda desk, _job: desk.end([held(desk)]),
    "fail": lambda desk, _job: fail(desk),
    "bury": lambda desk, _job: fail(desk, retryable=[False]),
    "release": lambda desk, _job: desk.worker.batch("release", "w", [held(desk)]),
    "progress": lambda desk, known: desk.worker.value(
        "select trunkline.progress('w', %s, 1, 10)", known
    ),
    "emit": lambda desk, known: desk.worker.value(
        "select trunkline.emit('w', array[%s::uuid], array[1], array[1], array['x'])", known
    ),
    "cancel": lambda desk, known: desk.producer.change("cancel", known),
    "cancel_jobs": lambda desk, _job: desk.operator.value(
        'select trunkline.cancel_jobs(\'{"task": "work"}\')'
    ),
}
DEAD: dict[str, Action] = {
    "retry": lambda desk, known: desk.operator.change("retry", known),
    "retry_jobs": lambda desk, _job: desk.operator.value(
        'select trunkline.retry_jobs(\'{"task": "work"}\')'
    ),
    "retry_edited": lambda desk, known: desk.operator.change("retry_edited", known, "{}"),
}


@pytest.mark.parametrize(
    ("state", "action"),
    [("waiting", name) for name in WAITING]
    + [("running", name) for name in RUNNING]
    + [("dead", name) for name in DEAD],
)
def test_each_change_of_a_followed_job_notifies_once(
    desk: Desk, ear: Ear, state: str, action: str
) -> None:
    desk.task(max_attempts=5)
    (known,) = desk.enqueue()
    if state != "waiting":
        desk.claim()
    if state == "dead":
        fail(desk, retryable=[False])
    follow(desk, known)
    assert ear.heard(LIVE) == []
    {"waiting": WAITING, "running": RUNNING, "dead": DEAD}[state][action](desk, known)
    assert ear.heard(LIVE) == [str(known)]


def test_nobody_is_notified_of_jobs_that_nobody_follows(desk: Desk, ear: Ear) -> None:
    desk.task()
    desk.enqueue(3)
    desk.end(desk.claim())
    (followed,) = desk.enqueue()
    follow(desk, followed)
    live.expire_flags(desk.behind)
    desk.end(desk.claim())
    assert ear.heard(LIVE) == []


def test_one_notification_names_all_jobs_of_a_batch(desk: Desk, ear: Ear) -> None:
    desk.task()
    jobs = desk.enqueue(5)
    follow(desk, *jobs[:3])
    desk.claim()
    (payload,) = ear.heard(LIVE)
    assert set(payload.split(" ")) == set(map(str, jobs[:3]))


def test_payloads_stay_below_the_limit_of_the_server(desk: Desk, ear: Ear) -> None:
    desk.task()
    jobs = desk.enqueue(450)
    follow(desk, *jobs)
    desk.claim(1000)
    payloads = ear.heard(LIVE)
    assert len(payloads) == 3
    assert {known for payload in payloads for known in payload.split(" ")} == set(map(str, jobs))


def test_a_flag_is_written_again_only_after_a_minute(desk: Desk) -> None:
    desk.task()
    (known,) = desk.enqueue()
    follow(desk, known)
    before = live.flag_version(desk.behind)
    follow(desk, known)
    assert live.flag_version(desk.behind) == before
    live.expire_flags(desk.behind)
    follow(desk, known)
    assert live.flag_version(desk.behind) != before


def test_expired_flags_are_swept(desk: Desk) -> None:
    desk.task()
    jobs = desk.enqueue(2)
    follow(desk, jobs[0])
    live.expire_flags(desk.behind)
    follow(desk, jobs[1])
    desk.operator.value("select trunkline.run_duty('sweep_live')")
    assert live.flags(desk.behind) == {jobs[1]}


def test_jobs_of_a_followed_workflow_notify_with_its_id(desk: Desk, ear: Ear) -> None:
    flow = Flow(desk.database)
    flow.producer.register("work", max_attempts=1)
    started = flow.start([job("a"), job("b", "a")])
    follow(desk, started.workflow_id)
    for _ in range(2):
        attempts = desk.claim()
        assert ear.heard(LIVE) == [str(started.workflow_id)]
        desk.end(attempts)
        assert set(ear.heard(LIVE)) == {str(started.workflow_id)}
    assert flow.state(started.workflow_id) == "completed"


def test_output_is_swept_an_hour_after_the_end(desk: Desk) -> None:
    desk.task()
    (known,) = desk.enqueue()
    (attempt,) = desk.claim()
    RUNNING["emit"](desk, known)
    live.age_output(desk.behind, 120)
    sweep = "select trunkline.run_duty('sweep_live')"
    desk.operator.value(sweep)
    assert live.chunks(desk.behind) != [], "the job runs"
    desk.end([attempt])
    live.age_ends(desk.behind, 50)
    desk.operator.value(sweep)
    assert live.chunks(desk.behind) != [], "it has ended less than an hour ago"
    live.age_ends(desk.behind, 20)
    desk.operator.value(sweep)
    assert live.chunks(desk.behind) == []
