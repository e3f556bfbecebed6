"""Time-to-live by type: stale at the TTL and not before, hard limit at four times of it."""

from datetime import timedelta

import pytest

from profiles.tests.executor.conftest import TYPES, Desk


def test_rc_05_each_type_has_its_ttl(desk: Desk) -> None:
    """RC-05, RC-09, RC-21: TTL, hard limit of four times the TTL, ten attempts."""
    rows = {row.type: row for row in desk.rows("select * from executor.executor_job_types")}
    assert rows.keys() == {*TYPES, "decide_next_step"}
    for kind, minutes in TYPES.items():
        assert rows[kind].ttl == timedelta(minutes=minutes)
        assert rows[kind].hard_limit == 4 * rows[kind].ttl
        assert rows[kind].max_attempts == 10
        assert rows[kind].queue == "orchestrator"


def test_rc_06_a_ttl_is_a_row_that_operators_change(desk: Desk) -> None:
    """RC-06: it holds for the next claim, and a repeated installation keeps it."""
    desk.operator.value("select executor.set_job_type('build_artifact', '1 minute')")
    job = desk.start("build_artifact")
    desk.pass_time("61 seconds")
    assert [row.id for row in desk.reclaim()] == [job]
    assert "Exceeded TTL (1 min)" in desk.row(job).last_error


def test_rc_06_an_unknown_type_gets_the_default_and_is_reported(desk: Desk) -> None:
    """RC-06: 30 minutes, a warning at once, and a line for operators until it has a row."""
    warnings: list[str] = []
    desk.producer.connection.add_notice_handler(
        lambda notice: warnings.append(str(notice.message_primary))
    )
    job = desk.start("notarise")
    assert ["notarise" in warning for warning in warnings] == [True]
    metric = "select value, alert from executor.executor_metrics where metric = 'types_without_ttl'"
    assert desk.rows(metric) == [(1, True)]
    desk.pass_time("29 minutes 59 seconds")
    assert desk.reclaim() == []
    desk.pass_time("2 seconds")
    assert [row.id for row in desk.reclaim()] == [job]
    desk.operator.value("select executor.set_job_type('notarise', '10 minutes')")
    assert desk.rows(metric) == [(0, False)]


@pytest.mark.parametrize(("kind", "minutes"), TYPES.items())
def test_rc_08_stale_at_the_ttl_and_not_before(desk: Desk, kind: str, minutes: int) -> None:
    """RC-08: one second before the TTL the job is kept, one second after it is taken back."""
    job = desk.start(kind)
    desk.pass_time(f"{minutes} minutes -2 seconds")
    assert desk.reclaim() == []
    assert desk.row(job).status == "running"
    desk.pass_time("3 seconds")
    assert [(row.id, row.type, row.new_status) for row in desk.reclaim()] == [(job, kind, "queued")]


def test_rc_07_liveness_is_the_later_of_lock_and_heartbeat(desk: Desk) -> None:
    """RC-07, RC-31, RC-52: a beat counts from its own time on, an old lock does not matter."""
    job = desk.start()
    desk.pass_time("25 minutes")
    assert desk.beat(job)
    desk.pass_time("29 minutes 58 seconds")
    assert desk.reclaim() == []
    desk.pass_time("3 seconds")
    assert [row.id for row in desk.reclaim()] == [job]


def test_rc_s04_one_of_each_type_after_sixteen_minutes(desk: Desk) -> None:
    """RC-S04: fast types and the artifact are taken back, time stamp and anchors are not."""
    jobs = {kind: desk.start(kind) for kind in TYPES}
    unknown = desk.start("notarise")
    desk.pass_time("16 minutes")
    taken = {row.type for row in desk.reclaim()}
    assert taken == {"protect_document_v2", "document.protected", "build_artifact"}
    for kind in ("run_tsa", "submit_anchor_polygon", "submit_anchor_bitcoin"):
        assert desk.row(jobs[kind]).status == "running"
    desk.pass_time("15 minutes")
    assert unknown in {row.id for row in desk.reclaim()}
    assert desk.rows("select type from executor.executor_job_types where not configured") == [
        ("notarise",)
    ]


def test_rc_s08_heartbeats_end_at_the_hard_limit(desk: Desk) -> None:
    """RC-S08, RC-09, RC-52: four times the TTL, two hours for run_tsa, and no beat beyond it.

    A beat every quarter of an hour stands for one every 15 seconds: both are within the TTL.
    """
    job = desk.start()
    for _ in range(7):
        desk.pass_time("15 minutes")
        assert desk.beat(job)
        assert desk.reclaim() == []
    desk.pass_time("14 minutes 55 seconds")
    assert desk.beat(job)
    assert desk.reclaim() == []
    desk.pass_time("65 seconds")
    assert not desk.beat(job)
    assert [row.id for row in desk.reclaim()] == [job]
    assert desk.row(job).last_error.startswith("RECLAIMED_TTL: Exceeded hard limit (120 min)")
