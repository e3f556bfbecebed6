"""Breakers for whoever is around them: operators, sleepers, duties, calls outside of the claim."""

from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.flow.test_breakers import breaker, calling, ended, opened, seen, state
from tests.support.calls import Calls
from tests.support.internals import rows


def explained(desk: Desk, job: UUID) -> list[tuple[str, datetime | None, dict[str, Any]]]:
    desk.worker.value("select trunkline.register_worker('w', p_pulse_interval => '1 hour')")
    rows = desk.operator.connection.execute(
        "select reason, until, detail from trunkline.explain(%s)", (job,)
    )
    return [(reason, until, detail) for reason, until, detail in rows]


def test_explain_names_the_breaker_that_holds_a_job_and_until_when(desk: Desk) -> None:
    last = opened(desk).enqueue(1)[0]
    [(reason, until, detail)] = explained(desk, last)
    assert (reason, until) == ("breaker", seen(desk)["probe_at"])
    assert (detail["breaker"], detail["state"], detail["failures"]) == ("api", "open", 10)
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    [(reason, until, detail)] = explained(desk, last)
    assert (reason, until, detail["state"]) == ("breaker", None, "half_open")
    desk.end([probe])
    assert [reason for reason, _, _ in explained(desk, last)] == ["limit"]


def test_a_sleeping_worker_wakes_for_the_probe(desk: Desk) -> None:
    """Whether a window has been charged or nothing ever started."""
    opened(desk).worker.connection.execute(
        "select trunkline.register_worker(p_worker => 'w', p_pulse_interval => '1 second')"
    )
    asked = "select trunkline.sleep('w')"
    assert desk.worker.value(asked) == seen(desk)["probe_at"]
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    retries = desk.worker.value(asked) - desk.worker.clock()
    assert retries.total_seconds() > 3000, "the end of the probe is announced, not waited for"
    desk.worker.connection.execute("listen trunkline_wake")
    desk.end([probe])
    [notice] = desk.worker.connection.notifies(timeout=180, stop_after=1)
    assert notice.payload == "default"


def test_a_worker_of_another_queue_is_woken_when_it_closes(desk: Desk) -> None:
    """The probe was in one queue; what waits in others may start too."""
    opened(desk).enqueue(1, queue="other")
    desk.database.move_time("1 minute")
    [probe] = desk.worker.claim("w", 1, queues=["default"]).attempts
    sleeper = desk.database.connect("trunkline_worker")
    sleeper.execute("select trunkline.register_worker(p_worker => 's')")
    sleeper.execute("listen trunkline_wake")
    sleeper.execute("select trunkline.sleep('s', array['other'])")
    desk.end([probe])
    [notice] = sleeper.notifies(timeout=180, stop_after=1)
    assert notice.payload == "other"


def test_an_operator_closes_it(desk: Desk) -> None:
    opened(desk)
    assert desk.operator.value("select trunkline.reset_breaker('api')") == 1
    found = seen(desk)
    assert (found["state"], found["failures"], found["attempts"], found["reason"]) == (
        "closed",
        0,
        0,
        "reset",
    )
    assert found["changed_by"] == desk.operator.value("select session_user::text")
    assert desk.operator.value("select trunkline.reset_breaker('api')") == 0
    assert len(desk.claim()) == 40


def test_an_operator_closes_those_of_all_keys(desk: Desk) -> None:
    calling(breaker(desk, "model/{model}", failures=2), "model/{model}")
    for model in "abc":
        desk.enqueue(2, payload={"model": model})
        ended(desk, "fail", 2)
    assert desk.operator.value("select trunkline.reset_breaker('model/a')") == 1
    assert desk.operator.value("select trunkline.reset_breaker('model/{model}')") == 2
    assert {state(desk, f"model/{model}") for model in "abc"} == {"closed"}


def test_a_probe_that_was_reset_meanwhile_decides_nothing_later(desk: Desk) -> None:
    opened(desk)
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    desk.operator.value("select trunkline.reset_breaker('api')")
    desk.end([probe], "fail")
    found = seen(desk)
    assert (found["state"], found["failures"]) == ("closed", 1)


def test_an_operator_opens_it(desk: Desk) -> None:
    calling(breaker(desk))
    desk.enqueue(5)
    [running] = desk.claim(1)
    probe_at = desk.operator.value("select trunkline.trip_breaker('api', 'nonsense', '1 hour')")
    found = seen(desk)
    assert (found["state"], found["probe_at"], found["reason"]) == ("open", probe_at, "nonsense")
    desk.end([running])
    assert state(desk) == "open"
    desk.database.move_time("59 minutes")
    assert desk.claim() == []
    desk.database.move_time("61 seconds")
    [probe] = desk.claim()
    desk.operator.value("select trunkline.trip_breaker('api')")
    desk.end([probe])
    found = seen(desk)
    assert (found["state"], found["reason"]) == ("open", "opened by hand")


def test_what_waits_behind_one_that_was_opened_before_its_first_job_is_woken(desk: Desk) -> None:
    calling(breaker(desk)).operator.value("select trunkline.trip_breaker('api')")
    desk.worker.connection.execute("select trunkline.register_worker(p_worker => 'w')")
    jobs = desk.enqueue(2)
    assert desk.claim() == []
    assert desk.worker.value("select trunkline.sleep('w')") == seen(desk)["probe_at"]
    desk.database.move_time("1 minute")
    assert desk.claimed() == jobs[:1]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("reset_breaker('apy')", "unknown_limit"),
        ("trip_breaker('apy')", "unknown_limit"),
        ("reset_breaker('plain')", "invalid_argument"),
        ("trip_breaker('plain')", "invalid_argument"),
        ("trip_breaker('model/{model}')", "invalid_argument"),
        ("trip_breaker('api', p_for => '0')", "invalid_argument"),
        ("trip_breaker('api', p_for => 'infinity'::text::interval)", "invalid_argument"),
        ("trip_breaker('api', repeat('x', 1001))", "invalid_argument"),
        ("trip_breaker(null)", "unknown_limit"),
        ("reset_breaker(null)", "unknown_limit"),
    ],
)
def test_what_has_no_breaker_is_refused(desk: Desk, call: str, code: str) -> None:
    breaker(breaker(desk.limit("plain", concurrency=1)), "model/{model}")
    if "infinity" in call and desk.behind.info.server_version < 170000:
        call = call.replace("infinity", "31 days")
    with pytest.raises(psycopg.Error) as refused:
        desk.operator.value(f"select trunkline.{call}")
    assert code in str(refused.value.diag.message_detail) + str(refused.value.diag.message_primary)


def test_recovery_waits_for_nobody_and_the_duty_counts_what_it_left(desk: Desk) -> None:
    """RC-15, RF-70: somebody who failed jobs has not committed yet."""
    calling(breaker(desk))
    desk.enqueue(11)
    [own] = desk.claim(1)
    desk.claim(10)
    hand = Calls(desk.database.connect("trunkline_worker", autocommit=False))
    hand.batch("fail", "w", [own])
    desk.worker.connection.execute("set lock_timeout = '1ms'")
    desk.database.move_time("301 seconds")
    assert len(desk.worker.reclaim()) == 10
    hand.connection.rollback()
    assert state(desk) == "closed"
    desk.worker.run_duty("sweep_buckets()")
    assert state(desk) == "open"


def test_what_no_window_sees_any_more_goes(desk: Desk) -> None:
    opened(desk)
    desk.operator.value("select trunkline.reset_breaker('api')")

    def counts() -> tuple[int, int]:
        return rows.count(desk.behind, "breaker_failures"), rows.count(desk.behind, "breakers")

    desk.worker.run_duty("sweep_buckets()")
    assert counts() == (10, 1)
    desk.database.move_time("11 minutes")
    desk.worker.run_duty("sweep_buckets(7)")
    assert counts() == (3, 1)
    desk.database.move_time("1 day")
    desk.worker.run_duty("sweep_buckets()")
    assert counts() == (0, 0)
    assert state(desk) == "closed"


def test_health_reports_open_breakers(desk: Desk) -> None:
    """RF-85: a visible state, and an alert."""
    asked = "select ok from trunkline.health() where \"check\" = 'breakers'"
    calling(breaker(desk))
    assert desk.operator.value(asked) is True
    desk.enqueue(10)
    ended(desk, "fail", 10)
    assert desk.operator.value(asked) is False
    detail = desk.operator.value(
        "select detail from trunkline.health() where \"check\" = 'breakers'"
    )
    assert detail == {"open": ["api"]}


def asked(desk: Desk) -> tuple[Any, ...]:
    """What acquire answers outside of any job."""
    row = desk.worker.connection.execute(
        "select granted, reason, free_at, grant_id from trunkline.acquire('api')"
    ).fetchone()
    assert row is not None
    return tuple(row)


def test_calls_outside_of_the_claim_are_held_and_probed_too(desk: Desk) -> None:
    """Nothing says whether such a call failed: one that was made and settled is a success."""
    opened(desk)
    assert asked(desk)[:3] == (False, "breaker", seen(desk)["probe_at"])
    desk.database.move_time("1 minute")
    granted, _, _, grant = asked(desk)
    assert granted
    assert seen(desk)["probe_job"] == grant
    assert asked(desk)[:3] == (False, "breaker", None)
    assert desk.claim() == []
    assert desk.worker.value("select trunkline.settle(%s)", grant) == "settled"
    assert state(desk) == "closed"
    assert len(desk.claim()) == 40


def test_a_call_that_was_never_settled_leaves_its_place_to_the_next(desk: Desk) -> None:
    opened(desk)
    desk.database.move_time("1 minute")
    assert asked(desk)[0]
    desk.database.move_time("5 minutes 1 second")
    assert state(desk) == "half_open"
    assert len(desk.claim()) == 1


def test_calls_within_a_job_are_no_attempts(desk: Desk) -> None:
    """Ten jobs of ten calls each that fail are ten of ten."""
    calling(breaker(desk))
    desk.enqueue(20)
    running = desk.claim(10)
    for attempt in running:
        for _ in range(10):
            granted = desk.worker.value(
                "select granted from trunkline.acquire('api', p_job => %s, p_attempt => %s)",
                attempt.job,
                attempt.number,
            )
            assert granted
    desk.end(running, "fail")
    found = seen(desk)
    assert (found["state"], found["failures"], found["attempts"]) == ("open", 10, 10)


def test_a_running_probe_makes_its_own_calls(desk: Desk) -> None:
    opened(desk)
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    call = "select granted from trunkline.acquire('api', p_job => %s, p_attempt => %s)"
    assert desk.worker.value(call, probe.job, probe.number) is True
    desk.database.move_time("5 seconds")
    assert desk.worker.value(call, probe.job, probe.number) is True
    assert seen(desk)["probe_job"] == probe.job
    desk.end([probe])
    assert state(desk) == "closed"


def _recovered(hand: Calls) -> bool:
    """Whether the recovery of lost attempts ran in this call."""
    rows = hand.connection.execute("select duty, ran, error from trunkline.run_duties()").fetchall()
    assert all(error is None for _, _, error in rows)
    return any(ran for duty, ran, _ in rows if duty == "reclaim")


def test_a_worker_that_starts_recovers_lost_jobs_first_and_respects_the_breaker(desk: Desk) -> None:
    """RF-84: recovery waits for no other session.

    While the breaker is open nothing starts; a minute later one job does.
    """
    calling(breaker(desk))
    desk.enqueue(30)
    assert len(desk.claim(10, worker="gone")) == 10
    desk.database.move_time("301 seconds")
    first = Calls(desk.database.connect("trunkline_worker", autocommit=False))
    assert _recovered(first)
    assert not _recovered(desk.worker), (
        "another session recovers, and this one does not wait for it"
    )
    first.connection.commit()
    assert state(desk) == "open"
    for _minute in range(2):
        assert desk.claim() == []
        desk.database.move_time("61 seconds")
        [probe] = desk.claim()
        desk.end([probe], "fail", delays=["1 hour"])
        assert state(desk) == "open"
    desk.database.move_time("61 seconds")
    [probe] = desk.claim()
    desk.end([probe])
    assert len(desk.claim()) > 1
