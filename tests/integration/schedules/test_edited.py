"""A schedule edited after a run: its due time is the key, and the edit does not fail on it."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.integration.schedules.desk import Desk

EDITS: dict[str, dict[str, Any]] = {
    "payload": {"p_payload": Jsonb({"to": "bob"})},
    "task": {"p_task": "summary"},
    "both": {"p_task": "summary", "p_payload": Jsonb({"to": "bob"})},
}


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """A schedule that ran at the first hour, with a payload."""
    desk.connection.execute("select trunkline.register_task(p_task => 'summary')")
    desk.set("hourly", p_payload=Jsonb({"to": "ann"}))
    desk.database.move_time("1 hour")
    (run,) = desk.run()
    assert (run["due_at"], run["error"]) == (desk.hour(1), None)
    return desk


def healthy(desk: Desk) -> None:
    schedule = desk.schedule("hourly")
    assert not schedule["paused"]
    assert (schedule["last_error"], schedule["last_error_at"]) == (None, None)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_within_the_period_applies_from_the_next_due_time(ran: Desk, edit: str) -> None:
    changed = ran.set("hourly", **EDITS[edit])
    assert changed["next_run_at"] == ran.hour(2)
    assert ran.run() == []
    ran.database.move_time("1 hour")
    (run,) = ran.run()
    assert (run["due_at"], run["error"]) == (ran.hour(2), None)
    jobs = {job["job_id"]: job for job in ran.jobs()}
    assert len(jobs) == 2
    assert jobs[run["job_id"]]["task"] == EDITS[edit].get("p_task", "report")
    healthy(ran)


@pytest.mark.parametrize("how", ["edited while paused", "edited, then paused and resumed"])
@pytest.mark.parametrize("edit", EDITS)
def test_a_due_time_that_comes_again_is_answered_by_its_run(ran: Desk, edit: str, how: str) -> None:
    """After a step of the clock back: the run of that due time was enqueued before the edit."""
    first = ran.jobs()
    ran.database.move_time("-1 hour")
    if how == "edited while paused":
        ran.call("pause_schedule", "hourly")
        ran.set("hourly", **EDITS[edit])
    else:
        ran.set("hourly", **EDITS[edit])
        ran.call("pause_schedule", "hourly")
    assert ran.call("resume_schedule", "hourly")["next_run_at"] == ran.hour(1)
    ran.database.move_time("1 hour")
    (run,) = ran.run()
    assert (run["due_at"], run["job_id"], run["error"]) == (ran.hour(1), first[0]["job_id"], None)
    assert ran.jobs() == first
    healthy(ran)
    schedule = ran.schedule("hourly")
    assert (schedule["next_run_at"], schedule["last_run_at"]) == (ran.hour(2), ran.hour(1))
    ran.database.move_time("1 hour")
    (following,) = ran.run()
    assert (following["due_at"], following["error"]) == (ran.hour(2), None)
    assert len(ran.jobs()) == 2
    healthy(ran)


def test_several_missed_due_times_go_past_one_that_was_answered(ran: Desk) -> None:
    """With missed = all, the due times after it still get their jobs, with the edited payload."""
    ran.database.move_time("-1 hour")
    ran.call("pause_schedule", "hourly")
    ran.set("hourly", p_missed="all", **EDITS["both"])
    ran.call("resume_schedule", "hourly")
    ran.database.move_time("3 hours")
    runs = ran.run()
    assert [(run["due_at"], run["error"]) for run in runs] == [
        (ran.hour(number), None) for number in (1, 2, 3)
    ]
    tasks = {job["job_id"]: job["task"] for job in ran.jobs()}
    assert [tasks[run["job_id"]] for run in runs] == ["report", "summary", "summary"]
    healthy(ran)
