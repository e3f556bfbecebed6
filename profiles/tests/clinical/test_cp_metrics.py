"""Numbers to watch, the objectives among them."""

from profiles.tests.clinical.conftest import AI, PLAIN, Clinic


def test_cp_94_every_number_is_there(clinic: Clinic) -> None:
    """CP-94: also while nothing happened yet, and nothing is an alert."""
    rows = clinic.rows("select metric, alert from clinical.metrics")
    assert {row.metric for row in rows} == {
        "audit_without_patient",
        "claim_latency_seconds_p99",
        "dead_letters_last_hour",
        "deferrals_last_hour",
        "deferred_without_progress",
        "double_completions",
        "oldest_heartbeat_seconds",
        "oldest_waiting_seconds",
        "permits_in_use",
        "reclaims_last_hour",
        "refusals",
        "tokens_of_minute",
    }
    assert not any(row.alert for row in rows)


def test_cp_94_they_count(clinic: Clinic) -> None:
    """CP-94: jobs by status and type, ages, reclaims, dead letters, deferrals, capacity."""
    lost = clinic.start("audit_cleanup")
    clinic.pass_time("301 seconds")
    clinic.rows("select * from trunkline.reclaim()")
    assert clinic.row(lost).status == "pending"
    dead, waiting = clinic.start(AI), clinic.enqueue(PLAIN)
    assert clinic.fail(dead, retryable=False)
    put_off = clinic.claim("w1", PLAIN)
    assert put_off.job_id == waiting
    assert clinic.reschedule(waiting, 0, jitter=False)
    running = clinic.start(AI, worker="w2", priority=9)
    clinic.pass_time("40 seconds")
    assert clinic.metric("jobs", f"processing {AI}").value == 1
    assert clinic.metric("jobs", f"failed {AI}").value == 1
    assert clinic.metric("jobs", f"pending {PLAIN}").value == 1
    assert 40 <= clinic.metric("oldest_waiting_seconds").value < 400
    assert 40 <= clinic.metric("oldest_heartbeat_seconds").value < 60
    assert clinic.metric("reclaims_last_hour").value == 1
    assert clinic.metric("dead_letters_last_hour").value == 1
    assert clinic.metric("deferrals_last_hour").value == 1
    assert clinic.metric("permits_in_use", "openai/gpt-4o-mini").value == 1
    assert clinic.metric("tokens_of_minute", "openai/gpt-4o-mini").value == 2000
    assert clinic.complete(running, "w2")


def test_cp_95_the_objectives_are_alerts(clinic: Clinic) -> None:
    """CP-95: claims within 5 s, lost jobs back within timeout and 60 s, no double completion."""
    job = clinic.enqueue()
    clinic.pass_time("2 seconds")
    clinic.claim()
    assert not clinic.metric("claim_latency_seconds_p99").alert
    clinic.pass_time("361 seconds")
    assert clinic.metric("oldest_heartbeat_seconds").alert
    clinic.rows("select * from trunkline.reclaim()")
    assert not clinic.metric("oldest_heartbeat_seconds").alert
    clinic.pass_time("90 seconds")
    clinic.claim()
    assert clinic.metric("claim_latency_seconds_p99").alert
    assert clinic.complete(job)
    assert clinic.metric("double_completions") == (0, False)


def test_cp_95_waiting_for_a_limit_is_no_late_claim(clinic: Clinic) -> None:
    """CP-95: a limit that holds a job back does what it is there for."""
    clinic.operator.connection.execute("update clinical.api_rate_limits set status = 'maintenance'")
    job = clinic.enqueue(AI)
    assert clinic.claim() is None
    clinic.pass_time("60 seconds")
    clinic.operator.connection.execute("update clinical.api_rate_limits set status = 'active'")
    assert clinic.claim().job_id == job
    assert clinic.metric("claim_latency_seconds_p99") == (0, False)
