"""Claim, reclaim, dead letters: the life of a job that nobody ends."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from profiles.tests.clinical.conftest import AI, PLAIN, TYPES, Clinic
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.tables import table


def reclaim(clinic: Clinic) -> list[UUID]:
    return [row.job_id for row in clinic.rows("select * from trunkline.reclaim()")]


def lose(clinic: Clinic, job: UUID, worker: str = "w1") -> None:
    """The worker falls silent until the sweeper takes the job back."""
    clinic.pass_time("301 seconds")
    assert reclaim(clinic) == [job]


def test_cp_s01_priority_then_age(clinic: Clinic) -> None:
    """CP-S01, CP-27, CP-28: 9 first, then the older 5, then the newer; then nothing."""
    older, first, newer = (clinic.enqueue(priority=p) for p in (5, 9, 5))
    claimed = [clinic.claim() for _ in range(4)]
    assert [row.job_id for row in claimed[:3]] == [first, older, newer]
    assert claimed[3] is None
    row = claimed[0]
    assert (row.job_type, row.retry_count, row.attempt) == (PLAIN, 0, 1)
    assert row.job_payload == {"work": True, "estimated_tokens": 1000}


def test_cp_27_only_the_types_asked_for(clinic: Clinic) -> None:
    """CP-27: null means any."""
    other, wanted = clinic.enqueue("audit_cleanup"), clinic.enqueue()
    assert clinic.claim("w1", PLAIN, "backup_operation").job_id == wanted
    assert clinic.claim("w1", PLAIN) is None
    assert clinic.claim().job_id == other


def test_cp_28_claimers_never_share_a_job(clinic: Clinic, database: Database) -> None:
    """CP-28, CP-30: each job once, whoever asks, one row at a time."""
    jobs = {clinic.enqueue() for _ in range(40)}

    def work(name: str) -> list[UUID]:
        calls, found = Calls(database.connect("trunkline_worker")), []
        claim = "select job_id from clinical.claim_next_job_v3(%s)"
        while row := calls.connection.execute(claim, (name,)).fetchone():
            found.append(row[0])
        return found

    with ThreadPoolExecutor(4) as pool:
        taken = [job for found in pool.map(work, "abcd") for job in found]
    assert len(taken) == 40
    assert set(taken) == jobs


def test_cp_28_a_locked_job_is_passed_over(clinic: Clinic, database: Database) -> None:
    """CP-28: a claim that is not committed yet holds nobody up."""
    first, second = clinic.enqueue(), clinic.enqueue()
    other = database.connect("trunkline_worker")
    with other.transaction():
        found = other.execute("select job_id from clinical.claim_next_job_v3('slow')").fetchone()
        assert found == (first,)
        clinic.worker.connection.execute("set lock_timeout = '2s'")
        assert clinic.claim("fast").job_id == second


def test_cp_29_a_claim_sets_the_lease(clinic: Clinic) -> None:
    """CP-29, CP-17: processing, start, worker, heartbeat of the present moment."""
    job = clinic.enqueue()
    clinic.pass_time("10 seconds")
    now = clinic.operator.clock()
    token = clinic.claim("w7").attempt
    row = clinic.row(job)
    assert (row.status, row.worker_id, row.attempt) == ("processing", "w7", token)
    assert row.started_at == row.heartbeat_at == row.updated_at
    assert timedelta(0) <= row.heartbeat_at - now < timedelta(seconds=5)


@pytest.mark.parametrize("kind", [PLAIN, AI])
def test_cp_30_one_row_under_any_plan(clinic: Clinic, kind: str) -> None:
    """CP-30: also where joins are nested loops and nothing is hashed or sorted."""
    jobs = {clinic.enqueue(kind) for _ in range(20)}
    for node in ("hashjoin", "mergejoin", "seqscan", "bitmapscan", "material", "sort"):
        clinic.worker.connection.execute(f"set enable_{node} = off".encode())
    for number in range(1, 4):
        assert clinic.claim().job_id in jobs
        assert clinic.operator.value("select count(*) from trunkline.stale_monitor") == number


def test_cp_31_lost_after_the_timeout_and_not_before(clinic: Clinic) -> None:
    """CP-31, CP-35: before 300 seconds it is not, at 301 it is, with nobody claiming."""
    job = clinic.start()
    clinic.pass_time("290 seconds")
    assert reclaim(clinic) == []
    clinic.pass_time("11 seconds")
    assert reclaim(clinic) == [job]
    assert clinic.row(job).status == "pending"


def test_cp_32_a_lost_job_comes_back(clinic: Clinic) -> None:
    """CP-32, CP-33, CP-97: fields cleared, one retry more, a jitter, who lost it, the patient."""
    job = clinic.start(AI, "loser")
    lose(clinic, job)
    row = clinic.row(job)
    assert (row.status, row.retry_count) == ("pending", 1)
    assert (row.worker_id, row.started_at, row.heartbeat_at) == (None, None, None)
    details = row.error_details
    assert (details["error_type"], details["original_worker"]) == ("worker_timeout", "loser")
    jitter = details["reclaim_jitter_seconds"]
    assert jitter == int(jitter)
    assert 0 <= jitter <= 60
    wait = row.scheduled_at - clinic.operator.clock()
    assert wait <= timedelta(seconds=jitter)
    assert details["timeout_at"]
    event = clinic.audit(job)[-1]
    assert (event.kind, event.patient_id) == ("lost", clinic.patient)
    assert event.new_values["status"] == "pending"


def test_cp_32_the_jitter_is_drawn_for_each_job(clinic: Clinic) -> None:
    """CP-32: twenty jobs lost together do not come back together."""
    for _ in range(20):
        clinic.start()
    clinic.pass_time("301 seconds")
    assert len(reclaim(clinic)) == 20
    drawn = clinic.rows(
        "select (error_details ->> 'reclaim_jitter_seconds')::numeric as s from clinical.job_queue"
    )
    assert len({row.s for row in drawn}) > 5


def test_cp_33_a_lost_job_names_the_worker_that_lost_it(clinic: Clinic) -> None:
    """CP-33: the worker that held it, not the one that claims next, and when."""
    job = clinic.start(worker="loser")
    clinic.enqueue("audit_cleanup")
    clinic.pass_time("301 seconds")
    before = clinic.operator.clock()
    assert clinic.claim("other", "audit_cleanup").job_id != job
    reclaim(clinic)
    details = clinic.row(job).error_details
    assert (details["error_type"], details["original_worker"]) == ("worker_timeout", "loser")
    assert datetime.fromisoformat(details["timeout_at"]) >= before
    assert details["reclaim_jitter_seconds"] in range(61)
    assert "final_worker" not in details


def test_cp_34_a_job_that_is_lost_for_good(clinic: Clinic) -> None:
    """CP-34: failed, the lease cleared, why and by whom."""
    clinic.operator.connection.execute(
        "update clinical.job_types set max_retries = 0 where job_type = %s", (PLAIN,)
    )
    job = clinic.start(worker="last")
    lose(clinic, job)
    row = clinic.row(job)
    assert (row.status, row.retry_count, row.worker_id) == ("failed", 0, None)
    assert (row.started_at, row.heartbeat_at) == (None, None)
    details = row.error_details
    assert details["dead_letter_reason"] == "exceeded_max_retries_after_timeout"
    assert details["final_worker"] == "last"
    assert datetime.fromisoformat(details["dead_lettered_at"]) == row.dead_letter_at
    assert clinic.claim() is None


def test_cp_35_a_lost_job_is_back_with_nobody_claiming(clinic: Clinic) -> None:
    """CP-35: the sweeper is a duty of its own; no worker polls."""
    job = clinic.start()
    clinic.pass_time("301 seconds")
    clinic.worker.connection.execute("select trunkline.run_duties()")
    row = clinic.row(job)
    assert (row.status, row.retry_count) == ("pending", 1)
    assert clinic.rows("select * from trunkline.workers where alive") == []


def test_cp_37_what_went_wrong_before_is_kept(clinic: Clinic) -> None:
    """CP-37: an entry for each attempt, in their order; the last is in front."""
    job = clinic.start()
    assert clinic.fail(job, error={"type": "First", "message": "one"})
    clinic.pass_time("10 minutes")
    assert clinic.claim().job_id == job
    assert clinic.reschedule(job, 0)
    assert clinic.claim("loser").job_id == job
    lose(clinic, job)
    details = clinic.row(job).error_details
    assert [(e["attempt"], e.get("error_type")) for e in details["history"]] == [
        (1, "First"),
        (2, None),
        (3, "worker_timeout"),
    ]
    assert details["history"][1]["reschedule_reason"] == "api_rate_limit_backpressure"
    assert details["history"][0]["message"] == "one"
    assert details["error_type"] == "worker_timeout"


def test_cp_s04_the_last_retry_is_a_dead_letter(clinic: Clinic) -> None:
    """CP-S04, CP-34, CP-49: failed, the reason, who lost it; requeued it can be claimed again."""
    job = clinic.enqueue(AI)
    for number in range(4):
        clinic.pass_time("2 minutes")
        claimed = clinic.claim(f"w{number}")
        assert (claimed.job_id, claimed.retry_count) == (job, number)
        lose(clinic, job)
    row = clinic.row(job)
    assert (row.status, row.retry_count, row.max_retries) == ("failed", 3, 3)
    assert row.dead_letter_at is not None
    assert (row.worker_id, row.started_at, row.heartbeat_at) == (None, None, None)
    details = row.error_details
    assert details["dead_letter_reason"] == "exceeded_max_retries_after_timeout"
    assert details["final_worker"] == "w3"
    assert details["dead_lettered_at"]
    # CP-37: what came before is kept, an entry for each attempt.
    assert [entry["attempt"] for entry in details["history"]] == [1, 2, 3, 4]
    assert [e.get("original_worker") for e in details["history"]] == ["w0", "w1", "w2", None]
    assert clinic.operator.value("select clinical.requeue_dead_letter(%s)", job) == job
    assert (clinic.row(job).status, clinic.row(job).retry_count) == ("pending", 0)
    event = clinic.audit(job)[-1]
    assert (event.kind, event.patient_id, event.action) == ("replayed", clinic.patient, "UPDATE")
    assert clinic.claim().job_id == job


def test_cp_36_a_reclaim_waits_for_nobody(clinic: Clinic, database: Database) -> None:
    """CP-36: a row that a heartbeat holds is passed over; a run is bounded."""
    held, free = clinic.start(), clinic.start()
    clinic.pass_time("301 seconds")
    # The job that is taken back is not due at once, as one of 61 would be.
    database.draw(0.5)
    other = database.connect("trunkline_worker")
    clinic.operator.connection.execute("set lock_timeout = '2s'")
    with other.transaction():
        other.execute("select trunkline.heartbeat('w1', array[%s]::uuid[], array[1])", (held,))
        assert reclaim(clinic) == [free]
    assert clinic.row(held).status == "processing"
    for _ in range(3):
        clinic.start()
    clinic.pass_time("302 seconds")
    assert len(clinic.rows("select * from trunkline.reclaim(2)")) == 2


def test_cp_45_max_retries_is_never_null(clinic: Clinic) -> None:
    """CP-12, CP-32: so that a lost job is always one or the other; a type may have its own."""
    clinic.operator.connection.execute(
        "update clinical.job_types set max_retries = 0 where job_type = 'audit_cleanup'"
    )
    job = clinic.start("audit_cleanup")
    lose(clinic, job)
    assert (clinic.row(job).status, clinic.row(job).max_retries) == ("failed", 0)
    with pytest.raises(psycopg.errors.NotNullViolation):
        clinic.operator.connection.execute("update clinical.job_types set max_retries = null")


def test_cp_16_the_indexes_of_the_source_have_equivalents(
    clinic: Clinic, database: Database
) -> None:
    """CP-16: leases of running jobs, dead letters, file keys, and the order of the claim."""
    found: dict[str, str] = dict(
        database.superuser()
        .execute(
            "select indexname, indexdef from pg_indexes where schemaname like 'trunkline%'"
            " or schemaname = 'clinical'"
        )
        .fetchall()
    )
    assert table("running") in found["running_expiry"]
    assert any(table("dead") in text and "died_at" in text for text in found.values())
    assert "WHERE (idempotency_key IS NOT NULL)" in found["idx_shell_files_idempotency_key"]
    assert "lane" in found["waiting_ready"]
    assert "sequence" in found["waiting_ready"]


def test_cp_17_every_change_of_state_shows(clinic: Clinic) -> None:
    """CP-17: updated_at moves with each."""
    seen: list[Any] = []
    job = clinic.enqueue()

    def look() -> None:
        seen.append(clinic.row(job).updated_at)
        clinic.pass_time("1 minute")

    look()
    clinic.claim()
    look()
    clinic.beat(job)
    look()
    clinic.reschedule(job, 5)
    look()
    clinic.claim()
    look()
    clinic.fail(job)
    look()
    clinic.claim()
    clinic.complete(job)
    look()
    assert seen == sorted(set(seen))
    assert len(seen) == 7


def test_cp_73_workers_beyond_the_limit_get_nothing(clinic: Clinic) -> None:
    """CP-73, CP-61: however many claim, no more run than the endpoint takes at once."""
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set concurrent_requests = 2 where api_endpoint = %s",
        ("gpt-4o-mini",),
    )
    for kind in TYPES[3:6]:
        clinic.enqueue(kind)
    claimed = [clinic.claim(f"w{number}") for number in range(3)]
    assert [row is not None for row in claimed] == [True, True, False]
    assert clinic.limit().active_requests == 2
