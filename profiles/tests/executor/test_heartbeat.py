"""The heartbeat function, for workers that are not ours."""

from uuid import uuid4

from profiles.tests.executor.conftest import Desk


def test_rc_29_true_while_the_job_is_the_callers(desk: Desk) -> None:
    """RC-29: sets heartbeat_at to the present for the worker that has the lock."""
    job = desk.start()
    desk.pass_time("15 seconds")
    assert desk.beat(job)
    row = desk.row(job)
    assert 14 < (row.heartbeat_at - row.locked_at).total_seconds() < 60
    assert row.updated_at == row.heartbeat_at


def test_rc_29_false_otherwise(desk: Desk) -> None:
    """RC-29: for another worker, a job that waits or ended, an unknown one, and no job at all."""
    job = desk.start()
    assert not desk.beat(job, "w2")
    assert desk.row(job).heartbeat_at is None
    attempts = desk.rows("select attempt from executor.executor_jobs_stale_monitor")
    assert not desk.beat(job, "w1", attempts[0].attempt + 1)
    waiting = desk.enqueue()
    assert not desk.beat(waiting)
    assert not desk.beat(uuid4())
    assert desk.worker.value("select executor.update_job_heartbeat(null, null)") is False
    assert desk.worker.value("select executor.update_job_heartbeat(%s, '')", job) is False
    ended = desk.worker.claim("w1").attempts
    desk.worker.batch("complete", "w1", ended)
    assert not desk.beat(waiting)


def test_rc_31_a_recent_heartbeat_prevents_the_reclaim(desk: Desk) -> None:
    """RC-31: although the lock is old."""
    job = desk.start()
    desk.pass_time("29 minutes")
    assert desk.beat(job)
    desk.pass_time("10 minutes")
    assert desk.reclaim() == []
    assert desk.row(job).status == "running"


def test_rc_31_a_beat_after_the_ttl_saves_what_was_not_taken_yet(desk: Desk) -> None:
    """RC-31: nobody else has the job, so that its worker may go on."""
    job = desk.start()
    desk.pass_time("35 minutes")
    assert desk.beat(job)
    assert desk.reclaim() == []


def test_rc_32_false_makes_the_worker_stop(desk: Desk) -> None:
    """RC-32: after a reclaim, and when the job is to be cancelled."""
    lost = desk.start()
    desk.pass_time("31 minutes")
    desk.reclaim()
    assert not desk.beat(lost)
    unwanted = desk.start("build_artifact")
    assert desk.beat(unwanted)
    desk.operator.change("cancel", unwanted)
    assert not desk.beat(unwanted)


def test_rc_33_fast_jobs_need_no_heartbeat(desk: Desk) -> None:
    """RC-33, RC-30: only the long types have an interval, of 15 seconds; decisions have none."""
    rows = desk.rows("select type, heartbeat_every from executor.executor_job_types")
    beats = {row.type: row.heartbeat_every.total_seconds() for row in rows if row.heartbeat_every}
    assert beats == dict.fromkeys(("run_tsa", "submit_anchor_polygon", "submit_anchor_bitcoin"), 15)
    job = desk.start("decide_next_step")
    desk.pass_time("1 second")
    assert desk.reclaim() == []
    assert desk.row(job).heartbeat_at is None


def test_rc_38_refused_heartbeats_are_counted(desk: Desk) -> None:
    """RC-38: per worker for a day, and together in the metrics."""
    job = desk.start()
    assert desk.beat(job)
    assert not desk.beat(job, "w2")
    assert desk.rows(
        "select worker_id, calls, refused from executor.executor_heartbeats order by 1"
    ) == [("w1", 1, 0), ("w2", 1, 1)]
    metric = "select value from executor.executor_metrics where metric = 'heartbeats_refused'"
    assert desk.rows(metric) == [(1,)]
    desk.pass_time("25 hours")
    assert not desk.beat(job, "w3")
    assert desk.rows("select worker_id from executor.executor_heartbeats") == [("w3",)]


def test_rc_54_a_long_job_is_seen_advancing(desk: Desk) -> None:
    """RC-54: heartbeat_at moves on with every call."""
    job = desk.start("submit_anchor_polygon")
    seen = []
    for _ in range(3):
        desk.pass_time("15 seconds")
        assert desk.beat(job)
        seen.append(desk.row(job).heartbeat_at)
    assert seen == sorted(set(seen))
