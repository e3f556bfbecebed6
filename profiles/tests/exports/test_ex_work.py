"""What workers do: claim within the limits, report, complete, fail, and die."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from profiles.tests.exports.conftest import Exports, refused
from trunkline_profiles.exports.repository import calculate_retry_delay


def seconds_until_retry(exports: Exports, job: Any) -> float:
    (row,) = exports.rows(
        "select extract(epoch from run_after - trunkline.clock())::float8 as wait"
        " from exports.export_jobs where id = %s",
        job,
    )
    return float(row.wait)


def test_ex_17_a_claim_takes_the_oldest_due_job(exports: Exports) -> None:
    """EX-17, EX-86: processing, one attempt, a lease and its owner; then complete."""
    first, second = exports.create(), exports.create()
    claimed = exports.claim()
    assert (claimed.id, claimed.status, claimed.attempts) == (first, "processing", 1)
    job = exports.job(first)
    assert (job.status, job.locked_by, job.attempts) == ("processing", "w1", 1)
    assert job.started_at is not None
    assert job.lease_expires_at > job.started_at
    assert exports.job(second).status == "pending"
    assert exports.complete(first)
    job = exports.job(first)
    assert (job.status, job.progress, job.attempts) == ("completed", 100, 1)
    assert (job.locked_by, job.lease_expires_at, job.run_after) == (None, None, None)


def test_ex_17_a_claim_can_be_restricted_to_one_user(exports: Exports) -> None:
    """EX-17: and the next claim sees everybody again."""
    other = exports.person()
    first, wanted = exports.create(), exports.create(user=other)
    assert exports.claim(user=uuid4()) is None
    assert exports.claim(user=other).id == wanted
    assert exports.claim().id == first


def test_ex_17_a_job_that_is_not_due_waits(exports: Exports) -> None:
    job = exports.create()
    exports.claim()
    assert exports.fail(job) == "pending"
    assert exports.claim() is None
    exports.later("73 seconds")
    assert exports.claim().attempts == 2


def test_ex_18_never_more_than_three_run(exports: Exports) -> None:
    """EX-18, EX-20, EX-79, EX-82: six claims at once, decided within the claim."""
    for _ in range(6):
        exports.create(user=exports.person())
    connections = [exports.database.connect("trunkline_worker") for _ in range(6)]

    def claim(pair: Any) -> int:
        query = b"select count(*) from exports.fetch_next_export_job(null, %s)"
        found: int = pair[1].execute(query, (f"w{pair[0]}",)).fetchone()[0]
        return found

    with ThreadPoolExecutor(6) as pool:
        claimed = list(pool.map(claim, enumerate(connections)))
    assert max(claimed) == 1
    assert sum(claimed) <= 3
    while exports.claim() is not None:
        pass
    statuses = [job.status for job in exports.jobs()]
    assert statuses.count("processing") == 3
    assert exports.claim() is None
    running = next(job for job in exports.jobs() if job.status == "processing")
    assert exports.complete(running.id, worker=running.locked_by)
    assert exports.claim() is not None


def test_ex_19_one_user_holds_two_of_three_slots_while_others_wait(exports: Exports) -> None:
    """EX-19, EX-51: alone, a user may have all three."""
    for _ in range(4):
        exports.create()
    other = exports.create(user=exports.person())
    claimed = [exports.claim().id for _ in range(3)]
    assert other in claimed
    exports.complete(other)
    assert exports.claim() is not None
    assert exports.claim() is None


def test_ex_04_a_claim_of_a_long_queue_takes_one_row(exports: Exports) -> None:
    """EX-04, EX-20, EX-88: the policy of the task, and one job for one call."""
    for _ in range(5):
        exports.create()
    assert exports.claim() is not None
    assert [job.status for job in exports.jobs()].count("processing") == 1
    (task,) = exports.rows("select * from trunkline.tasks where task = 'export_document'")
    assert task.max_attempts == 5
    assert task.lease.total_seconds() == 900


def test_ex_23_progress_never_falls_within_an_attempt(exports: Exports) -> None:
    """EX-23: a retry starts again at 0."""
    job = exports.create()
    exports.claim()
    for percent in (25, 50, 75, 50):
        assert exports.progress(job, percent)
    assert exports.job(job).progress == 75
    exports.fail(job)
    assert exports.job(job).progress == 0


def test_ex_27_completion_writes_job_and_history_together(exports: Exports) -> None:
    """EX-27, EX-07, EX-25, EX-28, EX-98, EX-S01: expiry in seven days, measured size and pages."""
    document = exports.document("My CV")
    job = exports.create(document, templateSlug="classic")
    exports.claim()
    assert exports.complete(job, size=4321, pages=3)
    row, history = exports.job(job), exports.history_of(job)
    assert (row.file_size, row.page_count, row.result_url) == (4321, 3, history.file_path)
    assert (history.user_id, history.document_id) == (exports.user, document)
    assert (history.document_version, history.template_slug) == (1, "classic")
    assert (history.file_name, history.format, history.download_count) == ("My CV.pdf", "pdf", 0)
    assert (history.expires_at - history.created_at).days == 7
    assert row.completed_at >= history.created_at
    # The path begins with the user, and names the job: a retry leaves no second file.
    assert history.file_path.startswith(f"t-{exports.user}/{job}/export/{job}-1-")


def test_ex_98_the_version_is_the_rendered_one(exports: Exports) -> None:
    document = exports.document()
    job = exports.create(document)
    exports.producer.connection.execute("update exports.documents set title = 'New'")
    exports.claim()
    (found,) = exports.rows(
        "select * from exports.export_input(%s, 'w1')", job, calls=exports.worker
    )
    assert (found.title, found.version, found.author) == ("New", 2, "Ann")
    path = exports.upload(job)
    exports.worker.value(
        "select exports.complete_job(%s, %s, 5, 1, 'w1', %s, null, %s)",
        *(job, path, "0" * 64, found.version),
    )
    assert exports.history_of(job).document_version == 2
    assert exports.job(job).document_version == 1


def test_ex_28_a_retry_leaves_one_file(exports: Exports) -> None:
    """EX-28, EX-57: each attempt has its own path; that of a failed one is removed."""
    job = exports.create()
    exports.claim()
    lost = exports.upload(job)
    exports.fail(job)
    exports.later("2 minutes")
    exports.claim()
    assert exports.complete(job)
    kept = exports.history_of(job).file_path
    assert kept != lost
    removals = exports.rows("select path from trunkline.file_removals")
    assert [row.path for row in removals] == [lost]
    (artifact,) = exports.rows("select * from trunkline.artifacts")
    assert (artifact.content_type, artifact.storage_path) == ("application/pdf", kept)


def test_ex_29_a_failure_is_retried_or_final(exports: Exports) -> None:
    """EX-29, EX-30, EX-31, EX-32, EX-83, EX-97: the fifth failure is final; the text stays."""
    job = exports.create()
    for attempt, delay in enumerate((60, 120, 240, 480), 1):
        assert exports.claim().attempts == attempt
        assert exports.fail(job, "RenderTimeout") == "pending"
        row = exports.job(job)
        assert (row.attempts, row.completed_at) == (attempt, None)
        assert "Shorten the content" in row.error_message
        assert 0.8 * delay - 5 <= seconds_until_retry(exports, job) <= 1.2 * delay
        exports.later("1 hour")
    exports.claim()
    assert exports.fail(job, "RenderTimeout") == "failed"
    row = exports.job(job)
    assert (row.status, row.attempts) == ("failed", 5)
    assert row.completed_at is not None
    exports.later("1 day")
    assert exports.claim() is None


def test_ex_30_the_delay_doubles_up_to_an_hour(exports: Exports) -> None:
    """EX-04, EX-30, EX-31, EX-96: the same in Python and SQL; the result never exceeds the cap."""
    expected = [60, 120, 240, 480, 960, 1920, 3600, 3600]
    for attempt, delay in enumerate(expected, 1):
        assert calculate_retry_delay(attempt, lambda: 0.5) == delay
        for draw in (0.0, 0.5, 1.0):
            found = calculate_retry_delay(attempt, lambda: draw)  # noqa: B023 - called here
            assert found == min(round(delay * (0.8 + 0.4 * draw)), 3600)
            query = "select exports.calculate_retry_delay(%s, %s)"
            assert exports.producer.value(query, attempt, draw) == found
    assert calculate_retry_delay(10_000, lambda: 1.0) == 3600
    for wrong in (0, -1):
        with refused("EX016"):
            exports.producer.value("select exports.calculate_retry_delay(%s)", wrong)


def test_ex_79_ten_failures_do_not_return_together(exports: Exports) -> None:
    """EX-79: jitter spreads the first retry over up to 24 seconds."""
    exports.unlimited()
    jobs = [exports.create(user=exports.person()) for _ in range(10)]
    for _ in jobs:
        exports.claim()
    for job in jobs:
        exports.fail(job)
    waits = [seconds_until_retry(exports, job) for job in jobs]
    assert max(waits) - min(waits) > 1
    assert 40 <= min(waits) <= max(waits) <= 72


@pytest.mark.parametrize("error", ["document_missing:", "invalid_options:", "storage_full:"])
def test_ex_33_permanent_errors_fail_at_once(exports: Exports, error: str) -> None:
    """EX-33, EX-63, EX-70: with a text for people."""
    job = exports.create()
    exports.claim()
    assert exports.fail(job, error, permanent=True) == "failed"
    row = exports.job(job)
    assert (row.attempts, row.status) == (1, "failed")
    assert row.error_message.endswith(".")
    assert row.completed_at is not None


def test_ex_34_a_silent_job_is_taken_back_after_fifteen_minutes(exports: Exports) -> None:
    """EX-34, EX-76, EX-96, EX-S10: its attempt counts once, and its worker is too late."""
    job = exports.create()
    exports.claim()
    exports.later("14 minutes 50 seconds")
    assert exports.operator.value("select exports.reset_stuck_jobs()") == 0
    exports.later("20 seconds")
    assert exports.operator.value("select exports.reset_stuck_jobs()") == 1
    row = exports.job(job)
    assert (row.status, row.attempts, row.error_message) == ("pending", 1, "Job timed out")
    assert not exports.progress(job, 50)
    assert exports.fail(job) is None
    with refused("EX014"):
        exports.upload(job)
    exports.later("73 seconds")
    assert exports.claim("w2").attempts == 2
    assert not exports.progress(job, 50, worker="w1")
    assert exports.complete(job, worker="w2")
    assert exports.job(job).attempts == 2
    assert len(exports.history()) == 1


def test_ex_34_progress_keeps_a_job_alive(exports: Exports) -> None:
    job = exports.create()
    exports.claim()
    exports.later("14 minutes")
    assert exports.progress(job, 25)
    exports.later("14 minutes")
    assert exports.operator.value("select exports.reset_stuck_jobs()") == 0
    assert exports.job(job).status == "processing"


def test_ex_34_the_fifth_loss_is_final(exports: Exports) -> None:
    """EX-34, EX-97: with a time of the end."""
    job = exports.create()
    for _ in range(5):
        exports.claim()
        exports.later("16 minutes")
        exports.worker.value("select exports.reset_stuck_jobs()")
        exports.later("1 hour")
    row = exports.job(job)
    assert (row.status, row.attempts, row.error_message) == ("failed", 5, "Job timed out")
    assert row.completed_at is not None


def test_ex_34_stuck_jobs_are_looked_for_more_than_once_a_minute(exports: Exports) -> None:
    (duty,) = exports.rows("select every from trunkline.duties where duty = 'reclaim'")
    assert duty.every.total_seconds() <= 60


def test_ex_72_a_worker_touches_only_what_it_holds(exports: Exports) -> None:
    """EX-72: another worker, or an older attempt, changes nothing."""
    job = exports.create()
    exports.claim()
    assert not exports.progress(job, 50, worker="thief")
    assert not exports.progress(job, 50, attempt=7)
    assert exports.fail(job, worker="thief") is None
    for query in (
        "select * from exports.export_input(%s, 'thief')",
        "select exports.prepare_upload(%s, 'thief', 1)",
        "select exports.record_export(%s, 'thief', 1, gen_random_uuid(), 'x', 1, 1)",
    ):
        with refused("EX014"):
            exports.worker.value(query, job)
    assert (
        exports.worker.value(
            "select exports.complete_job(%s, 'x', 1, 1, 'thief', %s)", job, "0" * 64
        )
        is False
    )
    assert exports.job(job).status == "processing"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        exports.worker.value("select * from exports.export_jobs")


def test_ex_72_an_upload_goes_where_the_database_said(exports: Exports) -> None:
    """EX-57: no job completes with the file of another."""
    first, second = exports.create(), exports.create()
    exports.claim()
    exports.claim()
    foreign = exports.upload(second)
    with pytest.raises(psycopg.Error, match="artifact"):
        exports.worker.value(
            "select exports.complete_job(%s, %s, 1, 1, 'w1', %s)", first, foreign, "0" * 64
        )
    assert exports.history() == []
