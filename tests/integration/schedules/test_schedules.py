"""Schedules: what they enqueue, how they are changed, what is refused."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.integration.schedules.desk import Desk
from tests.support.internals import periodic


def refused(state: str) -> Any:
    return pytest.raises(psycopg.Error, check=lambda error: error.sqlstate == state)


def test_a_due_time_becomes_one_job_with_the_options_of_the_schedule(desk: Desk) -> None:
    made = desk.set(
        "nightly",
        p_payload=Jsonb({"name": "you"}),
        p_queue="slow",
        p_priority=7,
        p_tenant="acme",
    )
    assert made == {
        "schedule": "nightly",
        "created": True,
        "paused": False,
        "next_run_at": desk.hour(1),
    }
    assert desk.run() == []

    desk.database.move_time("1 hour")
    (run,) = desk.run()
    assert run["schedule"] == "nightly"
    assert run["due_at"] == desk.hour(1)
    assert run["error"] is None
    (job,) = desk.jobs()
    assert job["job_id"] == run["job_id"]
    assert (job["task"], job["queue"], job["priority"]) == ("report", "slow", 7)
    assert (job["tenant"], job["tags"], job["state"]) == ("acme", ["schedule:nightly"], "ready")
    assert desk.call("job", job["job_id"])["payload"] == {"name": "you"}

    assert desk.run() == []
    schedule = desk.schedule("nightly")
    assert schedule["next_run_at"] == desk.hour(2)
    assert (schedule["last_run_at"], schedule["last_job_id"]) == (desk.hour(1), job["job_id"])


@pytest.mark.parametrize(
    ("missed", "due", "skipped"),
    [("skip", [], 3), ("once", [3], 2), ("all", [1, 2, 3], 0)],
)
def test_missed_due_times_follow_the_policy(
    desk: Desk, missed: str, due: list[int], skipped: int
) -> None:
    desk.set("hourly", p_missed=missed)
    desk.database.move_time("3 hours")
    assert [run["due_at"] for run in desk.run()] == [desk.hour(number) for number in due]
    assert len(desk.jobs()) == len(due)
    schedule = desk.schedule("hourly")
    assert (schedule["skipped"], schedule["next_run_at"]) == (skipped, desk.hour(4))


def test_skip_enqueues_what_is_at_most_a_minute_late(desk: Desk) -> None:
    desk.set("hourly", p_missed="skip")
    desk.database.move_time("2 hours 50 minutes 20 seconds")
    assert [run["due_at"] for run in desk.run()] == [desk.hour(3)]
    assert desk.schedule("hourly")["skipped"] == 2


def test_all_is_bounded_per_call_and_goes_on_at_the_next(desk: Desk) -> None:
    desk.set("hourly", p_missed="all")
    desk.database.move_time("5 hours")
    found = []
    for expected in (2, 2, 1, 0):
        runs = desk.run(limit=2)
        assert len(runs) == expected
        found += [run["due_at"] for run in runs]
    assert found == [desk.hour(number) for number in range(1, 6)]


def test_a_year_of_missed_minutes_is_passed_over_at_once(desk: Desk) -> None:
    desk.set("minutely", p_cron="* * * * *")
    desk.database.move_time("365 days")
    (run,) = desk.run()
    now = desk.now + timedelta(days=365)
    assert now - timedelta(minutes=1) < run["due_at"] <= now + timedelta(minutes=2)
    assert desk.schedule("minutely")["skipped"] == 1000


def test_a_backlog_holds_up_nobody(desk: Desk) -> None:
    desk.set("backlog", p_cron="* * * * *", p_missed="all")
    desk.set("on time", p_cron="0 * * * *", p_missed="skip")
    desk.database.move_time("2 hours 50 minutes 10 seconds")
    assert [run["schedule"] for run in desk.run(limit=1)] == ["on time"]
    assert {run["schedule"] for run in desk.run(limit=10)} == {"backlog"}


def test_due_schedules_run_in_order_up_to_the_limit(desk: Desk) -> None:
    """The earliest due time first, then by name; a backlog after those that are on time."""
    for name, minute in {"backlog": 15, "late": 20, "b": 30, "a": 30}.items():
        desk.set(name, p_cron=f"{minute} * * * *", p_missed="all" if name == "backlog" else "once")
    desk.database.move_time("40 minutes")
    pages = [[row["schedule"] for row in desk.run(limit=2)] for _ in range(3)]
    assert pages == [["late", "a"], ["b", "backlog"], []]


def test_paused_time_is_not_missed(desk: Desk) -> None:
    desk.set("hourly", p_missed="all")
    paused = desk.call("pause_schedule", "hourly")
    assert paused["paused"]
    assert paused["next_run_at"] is None
    desk.database.move_time("3 hours")
    assert desk.run() == []
    assert desk.call("pause_schedule", "hourly") == paused

    resumed = desk.call("resume_schedule", "hourly")
    assert (resumed["paused"], resumed["next_run_at"]) == (False, desk.hour(4))
    assert desk.run() == []
    desk.database.move_time("1 hour")
    assert [run["due_at"] for run in desk.run()] == [desk.hour(4)]


def test_resume_of_a_running_schedule_drops_nothing(desk: Desk) -> None:
    desk.set("hourly", p_missed="all")
    desk.database.move_time("2 hours")
    assert desk.call("resume_schedule", "hourly")["next_run_at"] == desk.hour(1)
    assert len(desk.run()) == 2


def test_edit_keeps_the_due_time_unless_it_is_about_time(desk: Desk) -> None:
    desk.set("hourly", p_missed="all")
    desk.database.move_time("1 hour")
    changed = desk.set("hourly", p_missed="once", p_priority=3)
    assert (changed["created"], changed["next_run_at"]) == (False, desk.hour(1))
    assert desk.set("hourly", p_cron="30 * * * *")["next_run_at"] == desk.hour(1) + timedelta(
        minutes=30
    )
    # Half an hour off the full hour in India.
    assert desk.set("hourly", p_time_zone="Asia/Kolkata")["next_run_at"] == desk.hour(
        1
    ) + timedelta(minutes=30)
    assert desk.set("hourly", p_paused=True)["next_run_at"] is None
    # Code that sets its schedules at every start does not undo an operator's pause.
    assert desk.set("hourly")["next_run_at"] is None
    assert desk.set("hourly", p_paused=False)["next_run_at"] == desk.hour(2)
    assert desk.run() == []


def test_remove_ends_it_and_keeps_its_jobs(desk: Desk) -> None:
    desk.set("hourly")
    desk.database.move_time("1 hour")
    desk.run()
    desk.connection.execute("select trunkline.remove_schedule('hourly')")
    desk.database.move_time("1 hour")
    assert desk.run() == []
    assert desk.schedules() == []
    assert len(desk.jobs()) == 1


def test_refused_enqueue_is_recorded_and_stops_nobody(desk: Desk) -> None:
    desk.set("refused", p_queue="closed")
    desk.set("served")
    desk.connection.execute("select trunkline.pause_queue('closed', 'test', true)")
    desk.database.move_time("1 hour")
    runs = {run["schedule"]: run for run in desk.run()}
    assert runs["refused"]["job_id"] is None
    assert runs["refused"]["error"].startswith("TL010")
    assert runs["served"]["job_id"] is not None
    schedule = desk.schedule("refused")
    assert schedule["last_error"] == runs["refused"]["error"]
    assert (schedule["next_run_at"], schedule["last_run_at"]) == (desk.hour(2), None)

    desk.connection.execute("select trunkline.resume_queue('closed')")
    desk.database.move_time("1 hour")
    assert {run["error"] for run in desk.run()} == {None}
    assert desk.schedule("refused")["last_error"] is None


def test_schedule_that_cannot_be_reckoned_any_more_is_paused_with_the_reason(desk: Desk) -> None:
    desk.set("broken")
    desk.set("whole")
    # As after an update of the time zones that dropped one.
    periodic.set_time_zone(desk.database.superuser(), "broken", "Mars/Base")
    desk.database.move_time("1 hour")
    errors = {run["schedule"]: run["error"] for run in desk.run()}
    assert errors == {"broken": "TL023: unknown time zone", "whole": None}
    schedule = desk.schedule("broken")
    assert (schedule["paused"], schedule["last_error"]) == (True, "TL023: unknown time zone")


def test_bad_input_is_refused_and_nothing_is_stored(desk: Desk) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"p_cron": "0 0 30 2 *"}, "TL012"),
        ({"p_cron": None}, "TL012"),
        ({"p_time_zone": "Mars/Base"}, "TL023"),
        ({"p_task": "nobody"}, "TL001"),
        ({"p_payload": Jsonb([1])}, "TL002"),
        ({"p_payload": None}, "TL002"),
        ({"p_priority": 50}, "TL005"),
        ({"p_missed": "never"}, "TL028"),
        ({"p_schedule": ""}, "TL028"),
        ({"p_queue": ""}, "TL028"),
        ({"p_tenant": ""}, "TL028"),
    ]
    for arguments, state in wrong:
        with refused(state):
            desk.set("bad", **arguments)
    assert desk.schedules() == []
    desk.set("good")
    for arguments, state in wrong:
        with refused(state):
            desk.set("good", **arguments)
    assert desk.schedule("good")["updated_at"] == desk.schedule("good")["created_at"]


def test_unknown_schedule_is_refused_with_the_known_ones(desk: Desk) -> None:
    for name in ("zoo", "ant", "known"):
        desk.set(name)
    for function in ("pause_schedule", "resume_schedule", "remove_schedule"):
        with refused("TL024") as caught:
            desk.call(function, "unknown")
        detail = caught.value.diag.message_detail
        assert detail is not None
        assert '"known": ["ant", "known", "zoo"]' in detail
    with refused("TL006"):
        desk.run(limit=0)


def test_tenant_sees_and_touches_only_its_own(desk: Desk) -> None:
    desk.set("ours", p_tenant="acme")
    desk.set("theirs", p_tenant="other")
    desk.set("nobody's")
    desk.connection.execute("set trunkline.tenant = 'acme'")
    assert desk.schedules() == ["ours"]
    for function in ("pause_schedule", "resume_schedule", "remove_schedule"):
        with refused("TL024") as caught:
            desk.call(function, "theirs")
        assert "other" not in str(caught.value.diag.message_detail)
    with refused("TL017"):
        desk.set("theirs")
    with refused("TL017"):
        desk.set("new", p_tenant="other")
    desk.set("new")
    assert desk.schedule("new")["tenant"] == "acme"

    desk.database.move_time("1 hour")
    # A session that acts for one tenant could not enqueue for the others and leaves it to them.
    assert desk.run() == []
    desk.connection.execute("reset trunkline.tenant")
    assert {run["schedule"] for run in desk.run()} == {"new", "nobody's", "ours", "theirs"}
    assert {job["tenant"] for job in desk.jobs()} == {"acme", "other", None}


@pytest.mark.parametrize("name", ["x" * 192, "é" * 96, "\N{SNOWMAN}" * 64])
def test_a_name_whose_runs_would_be_refused_is_refused(desk: Desk, name: str) -> None:
    """The tag of its jobs, schedule:<name>, has at most 200 bytes."""
    with pytest.raises(psycopg.Error) as refused:
        desk.set(name)
    assert refused.value.sqlstate == "TL028"
    assert desk.schedules() == []


@pytest.mark.parametrize("name", ["x" * 191, "é" * 95, "a:b/c %s\\'\n", "{tenant}"])
def test_every_name_that_is_accepted_runs(desk: Desk, name: str) -> None:
    desk.set(name)
    desk.database.move_time("1 hour")
    [run] = desk.run()
    assert (run["schedule"], run["error"]) == (name, None)


def test_a_payload_that_lacks_a_key_of_a_limit_is_refused_at_once(desk: Desk) -> None:
    execute = desk.connection.execute
    execute("select trunkline.set_limit('api/{model}', '{\"requests_per_minute\": 9}')")
    execute("select trunkline.register_task('call', p_limits => array['api/{model}'])")
    execute("select trunkline.register_task('fair', p_limits => array['fair:x/{tenant}'])")
    for changes in ({"p_task": "call"}, {"p_task": "fair"}):
        with pytest.raises(psycopg.Error) as refused:
            desk.set("s", **changes)
        assert refused.value.sqlstate == "TL031"
    desk.set("s", p_task="call", p_payload=Jsonb({"model": "m"}))
    desk.set("t", p_task="fair", p_tenant="acme")
    desk.database.move_time("1 hour")
    errors = {run["schedule"]: run["error"] for run in desk.run()}
    # The limit of the second may still be made: until then each run says so.
    assert errors["s"] is None
    assert errors["t"].startswith("TL030")
