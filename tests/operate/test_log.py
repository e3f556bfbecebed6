"""Every change by an operator leaves a line in the log, in the same transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.operate.conftest import Scene
from tests.operate.tenant_objects import arrange
from trunkline.artifacts import LocalStore
from trunkline.errors import SchemaForbidden
from trunkline.operate import LogEntry

Connection = psycopg.Connection[Any]

# What is called, and the line it leaves: action, kind, object.
CHANGES = [
    ("trunkline.pause_queue('q', 'strike')", ("pause_queue", "queue", "q")),
    ("trunkline.limit_queue('q', 10)", ("limit_queue", "queue", "q")),
    ("trunkline.age_queue('q')", ("age_queue", "queue", "q")),
    ("""trunkline.set_limit('api', '{"concurrency": 1}')""", ("set_limit", "limit", "api")),
    ("""trunkline.set_limit('api', '{"quota": 9}')""", ("set_limit", "limit", "api")),
    ("trunkline.set_setting('lease', '10 minutes')", ("set_setting", "setting", "lease")),
    ("trunkline.set_schedule('s', '@daily', 'work')", ("set_schedule", "schedule", "s")),
    ("trunkline.enable_duty('promote', false)", ("enable_duty", "duty", "promote")),
    ("trunkline.set_storage_quota('a', 9)", ("set_storage_quota", "storage", "a")),
    (
        "trunkline.set_artifact_retention('mp3', '7 days')",
        ("set_artifact_retention", "artifact_kind", "mp3"),
    ),
]


@pytest.fixture
def session(scene: Scene) -> Connection:
    connection = scene.database.connect("trunkline_operator")
    connection.execute("select set_config('trunkline.actor', 'ann', false)")
    return connection


def lines(scene: Scene, **more: Any) -> list[LogEntry]:
    return scene.operator.log.list(**more)


@pytest.mark.parametrize(("call", "line_of"), CHANGES)
def test_a_change_leaves_one_line_with_before_and_after(
    scene: Scene, session: Connection, call: str, line_of: tuple[str, str, str]
) -> None:
    session.execute("select set_config('trunkline.reason', 'incident 7', false)")
    session.execute(f"select {call}".encode())
    [line] = lines(scene)
    assert (line.action, line.kind, line.object) == line_of
    assert (line.login, line.actor) == ("trunkline_operator", "ann")
    assert line.reason == ("strike" if line.action == "pause_queue" else "incident 7")
    assert line.after is not None
    assert line.before != line.after
    # The same once more changes nothing, so it leaves no line.
    session.execute(f"select {call}".encode())
    assert len(lines(scene)) == 1


def test_the_opposite_change_shows_what_was_before(scene: Scene, session: Connection) -> None:
    session.execute("select trunkline.pause_queue('q', 'strike')")
    session.execute("select trunkline.resume_queue('q')")
    session.execute("select trunkline.set_schedule('s', '@daily', 'work', '{\"card\": \"4111\"}')")
    session.execute("select trunkline.pause_schedule('s')")
    session.execute("select trunkline.resume_schedule('s')")
    session.execute("select trunkline.remove_schedule('s')")
    session.execute("select trunkline.set_setting('lease', '10 minutes')")
    session.execute("select trunkline.set_setting('lease', null)")
    found = lines(scene)[::-1]
    assert [line.action for line in found] == [
        "pause_queue", "resume_queue", "set_schedule", "pause_schedule", "resume_schedule",
        "remove_schedule", "set_setting", "set_setting",
    ]  # fmt: skip
    paused, resumed, made, halted, _, removed, _, reset = found
    assert paused.before is None
    assert paused.after == resumed.before
    assert paused.after is not None
    assert (paused.after["paused"], paused.after["reason"]) == (True, "strike")
    assert resumed.after is not None
    assert resumed.after["paused"] is False
    assert halted.before == made.after
    assert removed.after is None
    assert (reset.before, reset.after) == ({"value": "10 minutes"}, {"value": "300 seconds"})
    # A payload is recorded as its hash.
    assert "4111" not in str(found)
    assert made.after is not None
    assert len(made.after["payload_sha256"]) == 64


def test_a_rolled_back_change_leaves_no_line(scene: Scene, session: Connection) -> None:
    with session.transaction(force_rollback=True):
        session.execute("select trunkline.pause_queue('q')")
    assert lines(scene) == []


def test_a_refused_change_leaves_no_line(scene: Scene, session: Connection) -> None:
    for call in ("set_setting('lease', 'soon')", "resume_queue('nowhere')", "pause_queue('')"):
        with pytest.raises(psycopg.Error):
            session.execute(f"select trunkline.{call}".encode())
    assert lines(scene) == []


def test_changes_of_single_jobs_are_recorded(scene: Scene, session: Connection) -> None:
    jobs = scene.operator.acting(reason="asked by support").jobs
    waiting = scene.calls.enqueue(tenant="acme").job_id
    jobs.reprioritise(waiting, 5)
    jobs.reprioritise(waiting, 5)
    jobs.cancel(waiting, reason="sent by mistake")
    jobs.cancel(waiting)
    new = jobs.retry(waiting).job_id
    [dead] = scene.bury()
    jobs.retry(dead)
    [gone] = scene.bury(payload={"card": "4111"}, queue="elsewhere")
    session.execute("select trunkline.acknowledge(%s)", (gone,))
    jobs.discard(gone, reason="obsolete")
    found = lines(scene)[::-1]
    assert [(line.action, line.object, line.reason) for line in found] == [
        ("reprioritise", str(waiting), "asked by support"),
        ("cancel", str(waiting), "sent by mistake"),
        ("retry", str(waiting), "asked by support"),
        ("retry", str(dead), "asked by support"),
        ("acknowledge", str(gone), None),
        ("discard", str(gone), "obsolete"),
    ]
    assert {line.actor for line in found} == {"ann"}
    assert [line.tenant for line in found[:3]] == ["acme"] * 3
    assert (found[0].before or {})["priority"] == 0
    assert (found[0].after or {})["priority"] == 5
    assert (found[2].after or {})["new_job"] == str(new)
    assert "4111" not in str(found)


def test_breakers_and_workers_are_recorded(scene: Scene, session: Connection) -> None:
    session.execute("select trunkline.set_limit('api', '{\"breaker_failures\": 3}')")
    session.execute("select trunkline.trip_breaker('api', 'provider is down')")
    session.execute("select trunkline.reset_breaker('api')")
    session.execute("select trunkline.reset_breaker('api')")
    scene.calls.connection.execute("select trunkline.register_worker('w1')")
    session.execute("select trunkline.drain_worker('w1')")
    found = lines(scene)[::-1]
    assert [line.action for line in found] == [
        "set_limit", "trip_breaker", "reset_breaker", "drain_worker",
    ]  # fmt: skip
    assert found[1].reason == "provider is down"
    assert (found[3].before, found[3].after) == ({"state": "active"}, {"state": "draining"})


def test_the_line_of_a_reset_breaker_shows_its_state_before(
    scene: Scene, session: Connection
) -> None:
    session.execute("select trunkline.set_limit('api', '{\"breaker_failures\": 3}')")
    session.execute("select trunkline.trip_breaker('api', 'provider is down')")
    session.execute("select trunkline.reset_breaker('api')")
    reset, tripped, _ = lines(scene)
    assert reset.before is not None
    assert tripped.after is not None
    assert (reset.before["state"], reset.before["breakers"]) == ("open", 1)
    assert reset.before["reason"] == "provider is down"
    assert reset.before["probe_at"] == tripped.after["probe_at"]
    assert reset.after == {"state": "closed", "breakers": 1}


def test_a_pause_of_the_provider_that_an_operator_lifts_is_recorded(
    scene: Scene, session: Connection
) -> None:
    limits = scene.operator.limits
    limits.set("api/{key}", {"concurrency": 1})
    worker = scene.database.connect("trunkline_worker")
    for key in ("x", "y"):
        observed = (f'{{"key": "{key}"}}', '{"retry_after": 600, "reason": "429"}')
        worker.execute(
            "select trunkline.observe_limit('api/{key}', %s::jsonb, %s::jsonb)", observed[::-1]
        )
    assert limits.resume("api/{key}", reason="the provider called") == ["api/x", "api/y"]
    assert limits.resume("api/{key}") == []
    second, first, _ = lines(scene)
    assert (first.action, first.kind, first.object) == ("observe_limit", "limit", "api/x")
    assert second.object == "api/y"
    assert (first.actor, first.reason) == ("ann", "the provider called")
    assert first.before is not None
    assert first.before["reason"] == "429"
    assert first.before["paused_until"] is not None
    assert first.after == {"paused_until": None}
    # A worker that hears from the provider is no operator.
    worker.execute("""select trunkline.observe_limit('api/x', '{"retry_after": 60}')""")
    worker.execute("""select trunkline.observe_limit('api/x', '{"retry_after": 0}')""")
    assert len(lines(scene)) == 3


def test_an_event_of_an_operator_is_recorded(scene: Scene, session: Connection) -> None:
    job = scene.calls.enqueue(tenant="acme").job_id
    session.execute("select trunkline.send_event('paid', '{\"card\": \"4111\"}', %s)", (job,))
    session.execute("select trunkline.send_event('paid', '{\"card\": \"4111\"}', %s)", (job,))
    session.execute("select trunkline.send_event('open', p_key => 'shop', p_tenant => 'acme')")
    scene.operator.acting(reason="end of day").events.send("closed", key="shop")
    producer = scene.database.connect("trunkline_producer")
    producer.execute("select trunkline.send_event('open', p_key => 'market')")
    closed, opened, paid = lines(scene, action="send_event")
    assert (paid.kind, paid.object, paid.tenant) == ("event", str(job), "acme")
    assert paid.after is not None
    assert (paid.after["event"], paid.after["resumed"]) == ("paid", 0)
    assert len(paid.after["payload_sha256"]) == 64
    assert "4111" not in str(paid)
    assert (opened.object, opened.tenant) == ("shop", "acme")
    assert closed.reason == "end of day"


def test_an_adopted_schedule_is_recorded(scene: Scene, session: Connection) -> None:
    session.execute("select trunkline.set_schedule('old', '@daily', 'work')")
    session.execute("select trunkline.adopt_schedule('work', 'old')")
    session.execute("select trunkline.adopt_schedule('work', 'old')")
    [line, _] = lines(scene)
    assert (line.action, line.kind, line.object) == ("adopt_schedule", "schedule", "work")
    assert (line.before, line.after) == ({"schedule": "old"}, {"schedule": "work"})


def test_a_deleted_artifact_is_recorded(scene: Scene, tmp_path: Path) -> None:
    theirs = arrange(scene, LocalStore(tmp_path / "files"))
    assert scene.operator.artifacts.delete(theirs.file, reason="wrong customer")
    assert not scene.operator.artifacts.delete(theirs.file, reason="wrong customer")
    [line] = lines(scene, object_name=str(theirs.file))
    assert (line.action, line.kind, line.tenant) == ("delete_artifact", "artifact", "b")
    assert line.before is not None
    assert (line.before["name"], line.before["job"]) == ("of b.txt", str(theirs.uploader))
    assert (line.after, line.reason) == (None, "wrong customer")


def test_duties_are_recorded(scene: Scene) -> None:
    superuser = scene.calls.connection
    superuser.execute("create schema mine authorization trunkline_owner")
    superuser.execute(
        "create function mine.tidy() returns integer language sql as 'select 0';"
        "alter function mine.tidy() owner to trunkline_owner"
    )
    superuser.execute("select trunkline.add_duty('tidy', 'mine.tidy', '1 hour')")
    superuser.execute("select trunkline.remove_duty('tidy')")
    assert [line.action for line in lines(scene, kind="duty")] == ["remove_duty", "add_duty"]


def test_a_producer_that_cancels_its_job_is_no_operator(scene: Scene) -> None:
    producer = scene.database.connect("trunkline_producer")
    job = scene.calls.enqueue().job_id
    producer.execute("select trunkline.reprioritise(%s, 3)", (job,))
    producer.execute("select trunkline.cancel(%s)", (job,))
    assert lines(scene) == []


def test_lines_are_filtered_and_paged(scene: Scene, session: Connection) -> None:
    for depth in (1, 2, 3):
        session.execute("select trunkline.limit_queue('q', %s)", (depth,))
    session.execute("select trunkline.pause_queue('p')")
    assert len(lines(scene, object_name="q")) == 3
    assert len(lines(scene, action="pause_queue")) == 1
    assert lines(scene, actor="bob") == []
    first = lines(scene, limit=2)
    second = lines(scene, limit=2, before=first[-1].log_id)
    assert [line.log_id for line in first + second] == sorted(
        (line.log_id for line in lines(scene)), reverse=True
    )


def test_lines_are_filtered_by_time(scene: Scene, session: Connection) -> None:
    session.execute("select trunkline.pause_queue('old')")
    scene.database.move_time("1 hour")
    session.execute("select trunkline.pause_queue('new')")
    new, old = lines(scene)
    assert lines(scene, since=new.at) == [new]
    assert lines(scene, until=new.at) == [old]
    assert lines(scene, since=old.at, until=new.at) == [old]


@pytest.mark.parametrize("role", ["operator", "reader"])
def test_these_roles_read_the_log(scene: Scene, session: Connection, role: str) -> None:
    session.execute("select trunkline.pause_queue('q')")
    assert len(scene.as_role(role).log.list()) == 1


@pytest.mark.parametrize("role", ["producer", "worker"])
def test_these_roles_do_not(scene: Scene, role: str) -> None:
    with pytest.raises(SchemaForbidden):
        scene.as_role(role).log.list()


def test_a_tenant_sees_lines_about_its_own_jobs(scene: Scene, session: Connection) -> None:
    session.execute("select trunkline.pause_queue('q')")
    for tenant in "ab":
        session.execute("select trunkline.cancel(%s)", (scene.calls.enqueue(tenant=tenant).job_id,))
    [line] = scene.as_role("operator", tenant="a").log.list()
    assert (line.action, line.tenant) == ("cancel", "a")


def test_lines_past_their_retention_are_removed_in_batches(
    scene: Scene, session: Connection
) -> None:
    session.execute("select trunkline.pause_queue('old')")
    scene.database.move_time("400 days")
    session.execute("select trunkline.pause_queue('new')")
    run = session.execute("select rows from trunkline.run_duty('sweep_operator_log')").fetchone()
    assert run == (1,)
    assert [line.object for line in lines(scene)] == ["new"]
