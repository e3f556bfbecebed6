"""Endpoints that give less than a waiting job costs: the view shows the reason, alive or dead."""

from typing import Any

import pytest

from profiles.tests.clinical.conftest import AI, Clinic
from profiles.tests.clinical.test_cp_limits import change

REASON = "cost_over_limit"


def passes(clinic: Clinic) -> list[Any]:
    """The jobs that call the endpoint, without the cancelled stage of their file's pipeline."""
    return clinic.rows(
        "select * from clinical.job_queue where job_type = %s and workflow_id is null", AI
    )


@pytest.fixture
def outgrown(clinic: Clinic) -> Clinic:
    """Jobs of 1,000 tokens, which the endpoint gives no more."""
    for _ in range(3):
        clinic.enqueue(AI)
    change(clinic, "tokens_per_minute = 900")
    return clinic


def test_cp_14_a_job_over_its_limit_is_pending_with_a_reason(outgrown: Clinic) -> None:
    """CP-14, CP-96: it waits under a status that is read, and says what for."""
    rows = passes(outgrown)
    assert {(row.status, row.waiting_reason, row.dead_letter_at) for row in rows} == {
        ("pending", REASON, None)
    }
    details = rows[0].error_details
    assert (details["set_aside_reason"], details["limit"]) == (REASON, "openai/gpt-4o-mini")
    assert (details["unit"], details["cost"], details["most"]) == ("tokens", 1000, 900)
    assert outgrown.claim() is None
    fits = outgrown.enqueue(AI, {"estimated_tokens": 900})
    assert outgrown.claim().job_id == fits


def test_cp_44_a_job_that_is_set_aside_for_a_day_is_an_alert(outgrown: Clinic) -> None:
    assert outgrown.metric("deferred_without_progress") == (0, False)
    outgrown.pass_time("25 hours")
    assert outgrown.metric("deferred_without_progress") == (3, True)
    assert outgrown.metric("oldest_waiting_seconds").value >= 25 * 3600
    change(outgrown, "tokens_per_minute = 100000")
    assert outgrown.metric("deferred_without_progress") == (0, False)
    assert outgrown.claim() is not None


def test_a_dead_letter_of_a_lowered_limit_has_that_reason(outgrown: Clinic) -> None:
    outgrown.operator.value("select trunkline.register_task(%s, p_dead_when_deferred => true)", AI)
    outgrown.pass_time("25 hours")
    outgrown.operator.value("select trunkline.sweep_buckets()")
    rows = passes(outgrown)
    assert len(rows) == 3
    for row in rows:
        assert (row.status, row.waiting_reason) == ("failed", None)
        assert row.error_details["dead_letter_reason"] == REASON
        assert (row.error_details["cost"], row.error_details["most"]) == (1000, 900)


def test_a_dead_letter_of_too_many_deferrals_has_that_reason(clinic: Clinic) -> None:
    clinic.operator.value("select trunkline.set_setting('max_deferrals', '1')")
    job = clinic.enqueue()
    clinic.operator.value(
        "select trunkline.register_task(%s, p_dead_when_deferred => true)",
        clinic.row(job).job_type,
    )
    for _ in range(2):
        assert clinic.claim().job_id == job
        assert clinic.reschedule(job, 0)
    row = clinic.row(job)
    assert (row.status, row.error_details["dead_letter_reason"]) == ("failed", "deferred_too_long")
