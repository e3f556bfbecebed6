"""The record: executor_jobs over the engine's tables, in the words of its source."""

import json
from typing import Any

import psycopg
import pytest

from profiles.tests.executor.conftest import Desk
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.tables import table

COLUMNS = {
    "id": "uuid",
    "dedupe_key": "text",
    "type": "text",
    "status": "text",
    "payload": "jsonb",
    "attempts": "integer",
    "locked_at": "timestamp with time zone",
    "locked_by": "text",
    "heartbeat_at": "timestamp with time zone",
    "last_error": "text",
    "created_at": "timestamp with time zone",
    "updated_at": "timestamp with time zone",
}


def test_rc_01_has_the_columns_of_the_source(desk: Desk) -> None:
    """RC-01: every column, of its type."""
    found = dict(
        desk.rows(
            "select a.attname, format_type(a.atttypid, null) from pg_attribute as a"
            " where a.attrelid = 'executor.executor_jobs'::regclass and a.attnum > 0"
        )
    )
    assert {name: found.get(name) for name in COLUMNS} == COLUMNS


def test_rc_01_the_dedupe_key_is_unique_among_live_jobs(desk: Desk) -> None:
    """RC-01: the same key gives the same job while it lives, and a new one afterwards."""
    first = desk.enqueue(key="doc-1")
    assert desk.enqueue(key="doc-1") == first
    claim = desk.worker.claim("w1")
    assert desk.enqueue(key="doc-1") == first
    desk.worker.batch("complete", "w1", claim.attempts)
    assert desk.enqueue(key="doc-1") != first


Notice = tuple[str | None, dict[str, Any], str | None]


@pytest.fixture
def notices(desk: Desk) -> list[Notice]:
    """What the producer's session receives beside the answers: SQLSTATE, detail, hint."""
    received: list[Notice] = []

    def take(notice: psycopg.errors.Diagnostic) -> None:
        detail = json.loads(notice.message_detail or "{}")
        received.append((notice.sqlstate, detail, notice.message_hint))

    desk.producer.connection.add_notice_handler(take)
    return received


def test_rc_01_a_job_of_another_type_with_the_same_key_is_reported(
    desk: Desk, notices: list[Notice]
) -> None:
    """RC-01: the key is unique in the profile; a notice says that the job is of another type."""
    stamp = desk.enqueue("run_tsa", key="doc-1")
    assert desk.enqueue("run_tsa", key="doc-1") == stamp
    assert notices == []
    expected = {
        "task": "submit_anchor_polygon",
        "job": str(stamp),
        "job_task": "run_tsa",
        "profile": "executor",
        "unique_key": "doc-1",
    }
    for _ in ("while it waits", "while it runs"):
        assert desk.enqueue("submit_anchor_polygon", key="doc-1") == stamp
        sqlstate, detail, hint = notices.pop()
        assert (sqlstate, detail, notices) == ("01TL1", expected, [])
        assert "name of the task in the key" in (hint or "")
        desk.worker.claim("w1")
    assert desk.row(stamp).status == "running"
    # Also for callers that silence notices: it is the only sign.
    desk.producer.connection.execute("set client_min_messages = error")
    desk.enqueue("submit_anchor_polygon", key="doc-1")
    assert len(notices) == 1


def test_a_repeated_request_reports_it_again(desk: Desk, notices: list[Notice]) -> None:
    """The first answer was a job of another type, wherever that job is by now."""
    stamp = desk.enqueue("run_tsa", key="doc-1")
    request = {"task": "submit_anchor_polygon", "idempotency_key": "request 1"}
    assert desk.producer.enqueue(**request, unique_key="doc-1").job_id == stamp
    states = []

    def repeat() -> None:
        answer = desk.producer.enqueue(**request)
        assert (answer.job_id, answer.created) == (stamp, False)
        states.append(answer.state)

    repeat()
    claim = desk.worker.claim("w1")
    repeat()
    desk.worker.batch("complete", "w1", claim.attempts)
    repeat()
    assert states == ["ready", "running", "completed"]
    assert [(sqlstate, detail["job_task"]) for sqlstate, detail, _ in notices] == [
        ("01TL1", "run_tsa")
    ] * 4


def test_rc_02_every_state_has_its_word(desk: Desk) -> None:
    """RC-02: queued, running, dead and succeeded; cancelled is the engine's addition."""
    job = desk.enqueue()
    assert desk.row(job).status == "queued"
    first = desk.worker.claim("w1")
    assert desk.row(job).status == "running"
    desk.worker.batch("fail", "w1", first.attempts)
    assert desk.row(job).status == "queued"
    desk.pass_time("1 minute")
    desk.worker.batch("complete", "w1", desk.worker.claim("w1").attempts)
    assert desk.row(job).status == "succeeded"
    other = desk.enqueue()
    desk.worker.batch("fail", "w1", desk.worker.claim("w1").attempts, retryable=[False])
    assert desk.row(other).status == "dead"
    third = desk.enqueue()
    desk.operator.change("cancel", third)
    assert desk.row(third).status == "cancelled"


@pytest.mark.parametrize(("word", "meaning"), [("processing", "running"), ("running", "running")])
def test_rc_02_processing_is_read_and_not_written(desk: Desk, word: str, meaning: str) -> None:
    """RC-02: the older word is understood; no state of the engine is shown by it."""
    assert desk.operator.value("select executor.executor_status(%s)", word) == meaning
    written = desk.rows(
        "select executor.executor_status(s) from unnest(array['blocked', 'scheduled', 'ready',"
        " 'running', 'completed', 'dead', 'cancelled']) as s"
    )
    assert {row[0] for row in written} == {"queued", "running", "succeeded", "dead", "cancelled"}


def test_rc_03_an_index_serves_the_reclaim(desk: Desk, database: Database) -> None:
    """RC-03: over running rows only, by the time their liveness ends."""
    found = Database.superuser(database).execute(
        "select indexdef from pg_indexes where indexname = 'running_expiry'"
    )
    ((definition,),) = found.fetchall()
    assert table("running") in definition
    assert "(lease_expires_at)" in definition


def test_rc_04_a_running_job_always_has_a_lock(desk: Desk, database: Database) -> None:
    """RC-04: the columns cannot be null, so that no job can be stale for ever."""
    job = desk.start()
    row = desk.row(job)
    assert (row.locked_by, row.locked_at) == ("w1", row.updated_at)
    found = database.superuser().execute(
        "select a.attname from pg_attribute as a where a.attnotnull"
        " and a.attrelid = %s::regclass"
        " and a.attname in ('claimed_at', 'worker', 'lease_expires_at')",
        (table("running"),),
    )
    assert len(found.fetchall()) == 3


def test_rc_14_the_heartbeat_is_kept_as_evidence(desk: Desk) -> None:
    """RC-14, RC-30: after the end, and after a reclaim; a new claim starts without one."""
    job = desk.start()
    desk.pass_time("10 seconds")
    assert desk.beat(job)
    beaten = desk.row(job).heartbeat_at
    assert beaten is not None
    desk.pass_time("31 minutes")
    desk.reclaim()
    row = desk.row(job)
    assert (row.status, row.heartbeat_at, row.locked_at) == ("queued", beaten, None)
    desk.pass_time("1 minute")
    claim = desk.worker.claim("w2")
    assert desk.row(job).heartbeat_at is None
    assert desk.beat(job, "w2")
    again = desk.row(job).heartbeat_at
    desk.worker.batch("complete", "w2", claim.attempts)
    assert desk.row(job).heartbeat_at == again


def test_what_a_handler_reports_cannot_break_the_view(desk: Desk) -> None:
    """RC-13: an error that only looks like a reclaim is shown, whatever is in its fields."""
    job = desk.start()
    forged = '{"type": "lease_expired", "lost_at": "soon", "claimed_at": [], "heartbeat_at": "x"}'
    claim = desk.rows("select attempt from executor.executor_jobs_stale_monitor")
    desk.worker.connection.execute(
        "select trunkline.fail('w1', array[%s]::uuid[], array[%s], array[%s::jsonb])",
        (job, claim[0].attempt, forged),
    )
    row = desk.row(job)
    assert row.status == "queued"
    assert row.heartbeat_at is None
    assert row.last_error.startswith("RECLAIMED_TTL:")


def test_the_payload_is_shown_whatever_its_size(desk: Desk) -> None:
    """RC-01: a large payload is kept apart by the engine and shown all the same."""
    large = "x" * 5000
    job = desk.producer.value(
        "select executor.enqueue_job('run_tsa', jsonb_build_object('d', %s::text))", large
    )
    assert desk.row(job).payload == {"d": large}


def test_a_session_of_one_tenant_enqueues_a_known_type_by_name(
    database: Database, desk: Desk
) -> None:
    producer = Calls(database.connect("trunkline_producer"))
    producer.connection.execute("select set_config('trunkline.tenant', 'a', false)")
    job = producer.value("select executor.enqueue_job('run_tsa')")
    row = producer.connection.execute("select id, type, tenant from executor.executor_jobs")
    assert row.fetchall() == [(job, "run_tsa", "a")]
    with pytest.raises(psycopg.Error) as caught:
        producer.value("select executor.enqueue_job('brand_new')")
    assert caught.value.sqlstate == "TL001"
