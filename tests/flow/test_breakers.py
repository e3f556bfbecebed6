"""Breakers: what fails too often stops, one probe tries whether it works again."""

from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.support.calls import Calls


def breaker(desk: Desk, name: str = "api", **parts: Any) -> Desk:
    """A limit with a breaker of the given parts, otherwise of the usual ones."""
    given = {"breaker_failures": 10} | {f"breaker_{part}": value for part, value in parts.items()}
    desk.operator.value("select trunkline.set_limit(%s, %s)", name, Jsonb(given))
    return desk


def calling(desk: Desk, *limits: str, task: str = "work") -> Desk:
    """A task that takes from these limits and is tried often."""
    desk.task(*(limits or ("api",)), task=task, max_attempts=100, backoff={"base": 1, "jitter": 0})
    return desk


def seen(desk: Desk, name: str = "api") -> dict[str, Any]:
    cursor = desk.operator.connection.execute(
        "select * from trunkline.breakers where name = %s", (name,)
    )
    row = cursor.fetchone()
    assert row is not None
    assert cursor.description is not None
    return dict(zip([column.name for column in cursor.description], row, strict=True))


def state(desk: Desk, name: str = "api") -> str:
    found: str = seen(desk, name)["state"]
    return found


def ended(desk: Desk, how: str, count: int, **more: Any) -> None:
    """So many jobs are claimed and ended in one way."""
    running = desk.claim(count)
    assert len(running) == count
    desk.end(running, how, **{name: [value] * count for name, value in more.items()})


def opened(desk: Desk) -> Desk:
    """Ten of ten have failed and come back much later; forty more wait."""
    calling(breaker(desk))
    desk.enqueue(50)
    ended(desk, "fail", 10, delays="1 hour")
    assert state(desk) == "open"
    return desk


def test_ten_failed_attempts_open_it_and_nothing_starts_any_more(desk: Desk) -> None:
    """RF-85, RF-130: with the provider down, no new batch starts once ten attempts have failed."""
    calling(breaker(desk))
    desk.enqueue(30)
    ended(desk, "fail", 9)
    assert state(desk) == "closed"
    ended(desk, "fail", 1)
    found = seen(desk)
    assert (found["state"], found["failures"], found["attempts"], found["share"]) == (
        "open",
        10,
        10,
        1,
    )
    assert found["reason"] == "10 of 10 attempts failed within 00:10:00"
    assert (found["probe_at"] - found["opened_at"]).total_seconds() == 60
    assert found["waiting"] == 20
    assert desk.claim() == []


def test_every_failed_attempt_counts_not_only_the_last_of_a_job(desk: Desk) -> None:
    """RF-85: one job that is tried ten times."""
    calling(breaker(desk))
    desk.enqueue(1)
    for _ in range(10):
        assert state(desk) == "closed"
        ended(desk, "fail", 1, delays="1 second")
        desk.database.move_time("2 seconds")
    assert state(desk) == "open"


@pytest.mark.parametrize(("good", "expected"), [(40, "open"), (41, "closed")])
def test_a_fifth_of_all_attempts_must_have_failed(desk: Desk, good: int, expected: str) -> None:
    """RF-85 with decision 14: ten of fifty open it, ten of fifty-one do not."""
    calling(breaker(desk))
    desk.enqueue(60)
    ended(desk, "complete", good)
    ended(desk, "fail", 10)
    found = seen(desk)
    assert (found["state"], found["attempts"]) == (expected, good + 10)
    assert float(found["share"]) == pytest.approx(10 / (good + 10), abs=0.0001)


def test_jobs_that_succeed_after_a_retry_do_not_count(desk: Desk) -> None:
    """RF-85, D35: each has failed once, and that is all there is to count."""
    calling(breaker(desk))
    desk.enqueue(9)
    ended(desk, "fail", 9)
    desk.database.move_time("10 seconds")
    ended(desk, "complete", 9)
    found = seen(desk)
    assert (found["state"], found["failures"], found["attempts"]) == ("closed", 9, 18)


def test_failures_grow_old(desk: Desk) -> None:
    """RF-85: in the last ten minutes."""
    calling(breaker(desk))
    desk.enqueue(30)
    ended(desk, "fail", 9)
    desk.database.move_time("10 minutes 1 second")
    ended(desk, "fail", 9)
    found = seen(desk)
    assert (found["state"], found["failures"]) == ("closed", 9)


def test_what_is_put_off_handed_back_or_cancelled_does_not_count(desk: Desk) -> None:
    """RF-130: not 429, deadlocks or other deferrals."""
    calling(breaker(desk))
    desk.enqueue(60)
    ended(desk, "snooze", 12, delays="1 hour")
    desk.end(desk.claim(12), "release")
    running = desk.claim(12)
    for attempt in running:
        desk.producer.change("cancel", attempt.job)
    desk.end(running[:6], "acknowledge_cancel")
    desk.end(running[6:], "fail")
    found = seen(desk)
    assert (found["state"], found["failures"]) == ("closed", 0)


def test_lost_attempts_count_and_are_recovered_all_the_same(desk: Desk) -> None:
    """RF-70, RF-87, RF-130, D11: the recovery that opens it commits with it."""
    calling(breaker(desk))
    jobs = desk.enqueue(10)
    assert sorted(desk.claimed()) == sorted(jobs)
    desk.database.move_time("301 seconds")
    assert sorted(row.job_id for row in desk.worker.reclaim()) == sorted(jobs)
    assert state(desk) == "open"
    row = desk.operator.connection.execute(
        "select count(*) filter (where state = 'scheduled'), count(*) from trunkline.jobs"
    ).fetchone()
    assert row == (10, 10)


def test_opening_is_a_part_of_the_failure(desk: Desk) -> None:
    """RF-87: it commits with the attempts that open it, and is not there without them."""
    calling(breaker(desk))
    desk.enqueue(20)
    running = desk.claim(10)
    hand = Calls(desk.database.connect("trunkline_worker", autocommit=False))
    verdicts = hand.batch("fail", "w", running)
    assert {verdict.verdict for verdict in verdicts} == {"ok"}
    hand.connection.rollback()
    found = seen(desk)
    assert (found["state"], found["failures"]) == ("closed", 0)
    hand.batch("fail", "w", running)
    hand.connection.commit()
    assert state(desk) == "open"


def test_after_a_minute_one_job_is_tried_and_its_success_closes_it(desk: Desk) -> None:
    """RF-86, D36: no full batch at a provider that may still be broken."""
    opened(desk)
    desk.database.move_time("59 seconds")
    assert desk.claim() == []
    desk.database.move_time("1 second")
    [probe] = desk.claim()
    found = seen(desk)
    assert (found["state"], found["probe_job"]) == ("half_open", probe.job)
    assert desk.claim() == []
    desk.end([probe])
    found = seen(desk)
    assert (found["state"], found["failures"], found["reason"]) == (
        "closed",
        0,
        "the probe succeeded",
    )
    assert len(desk.claim()) == 39


def test_a_failed_probe_keeps_it_open_for_as_long_again(desk: Desk) -> None:
    """RF-86."""
    opened(desk)
    since = seen(desk)["opened_at"]
    desk.database.move_time("1 minute")
    ended(desk, "fail", 1)
    found = seen(desk)
    assert (found["state"], found["opened_at"]) == ("open", since)
    desk.database.move_time("59 seconds")
    assert desk.claim() == []
    desk.database.move_time("2 seconds")
    [probe] = desk.claim()
    desk.end([probe])
    assert state(desk) == "closed"


def test_a_lost_probe_has_failed(desk: Desk) -> None:
    """RF-86, RF-130: the worker that tried it died; nobody else is tried before that is known."""
    opened(desk)
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    desk.database.move_time("4 minutes")
    assert desk.claim() == []
    desk.database.move_time("61 seconds")
    assert [row.job_id for row in desk.worker.reclaim()] == [probe.job]
    assert state(desk) == "open"
    assert desk.claim() == []
    desk.database.move_time("1 minute")
    assert len(desk.claim()) == 1


@pytest.mark.parametrize(
    ("how", "more"),
    [
        ("release", {}),
        ("snooze", {"delays": ["1 hour"]}),
        ("acknowledge_cancel", {}),
        ("fail", {}),
    ],
)
def test_a_probe_without_a_verdict_leaves_its_place_to_the_next(
    desk: Desk, how: str, more: dict[str, Any]
) -> None:
    """Handed back, put off or cancelled: it says nothing about the provider."""
    opened(desk)
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    if how in {"acknowledge_cancel", "fail"}:
        desk.producer.change("cancel", probe.job)
    desk.end([probe], how, **more)
    assert state(desk) == "half_open"
    [following] = desk.claim()
    assert desk.claim() == []
    assert (following.job == probe.job) is (how == "release")
    desk.end([following])
    assert state(desk) == "closed"


def test_failures_and_attempts_before_it_closed_are_over(desk: Desk) -> None:
    """Decision 14; the attempts of the time before would hide the failures of the time after."""
    calling(breaker(desk, share=0.5))
    desk.enqueue(300)
    ended(desk, "complete", 100)
    ended(desk, "fail", 100)
    assert state(desk) == "open"
    desk.database.move_time("1 minute")
    ended(desk, "complete", 1)
    ended(desk, "fail", 9)
    found = seen(desk)
    assert (found["state"], found["failures"], found["attempts"]) == ("closed", 9, 10)
    ended(desk, "fail", 1)
    assert state(desk) == "open"


def test_late_ends_of_jobs_that_started_before_decide_nothing(desk: Desk) -> None:
    """RF-86: only the probe does."""
    calling(breaker(desk))
    desk.enqueue(30)
    running = desk.claim(14)
    desk.end(running[:10], "fail")
    before = seen(desk)["probe_at"]
    desk.end(running[10:11])
    desk.end(running[11:12], "fail")
    found = seen(desk)
    assert (found["state"], found["probe_at"], found["failures"]) == ("open", before, 11)
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    desk.end(running[12:13])
    desk.end(running[13:14], "fail")
    assert seen(desk)["probe_job"] == probe.job
    assert desk.claim() == []


def test_each_key_has_a_breaker_of_its_own(desk: Desk) -> None:
    calling(breaker(desk, "model/{model}"), "model/{model}")
    desk.enqueue(20, payload={"model": "a"})
    ended(desk, "fail", 10)
    good = desk.enqueue(3, payload={"model": "b"})
    assert desk.claimed() == good
    assert (state(desk, "model/a"), state(desk, "model/b")) == ("open", "closed")


def test_a_task_has_a_breaker_of_its_own_beside_its_provider(desk: Desk) -> None:
    """One task's broken handler does not stop another that calls the same provider."""
    breaker(desk.limit("api", concurrency=50), "task/bad")
    calling(calling(desk, "api", "task/bad", task="bad"), "api", task="good")
    desk.enqueue(20, task="bad")
    ended(desk, "fail", 10)
    good = desk.enqueue(5, task="good")
    # Those that are held go to wait where they are held.
    assert sorted(desk.claimed() + desk.claimed()) == sorted(good)
    assert state(desk, "task/bad") == "open"
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    assert seen(desk, "task/bad")["probe_job"] == probe.job


def test_a_probe_of_two_breakers_speaks_for_both(desk: Desk) -> None:
    calling(breaker(breaker(desk), "task/work"), "api", "task/work")
    desk.enqueue(20)
    ended(desk, "fail", 10)
    assert (state(desk), state(desk, "task/work")) == ("open", "open")
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    assert desk.claim() == []
    desk.end([probe])
    assert (state(desk), state(desk, "task/work")) == ("closed", "closed")


def test_a_limit_without_a_breaker_counts_nothing(desk: Desk) -> None:
    calling(desk.limit("api", concurrency=50))
    desk.enqueue(20)
    ended(desk, "fail", 20)
    row = desk.behind.execute("select count(*) from trunkline_internal.breaker_failures").fetchone()
    assert row == (0,)
    assert desk.operator.value("select count(*) from trunkline.breakers") == 0


def explained(desk: Desk, job: UUID) -> list[tuple[str, datetime | None, dict[str, Any]]]:
    desk.behind.execute(
        "insert into trunkline_internal.workers (worker, started_at, seen_at, pulse_interval)"
        " values ('w', trunkline.clock(), trunkline.clock(), '1 hour') on conflict do nothing"
    )
    rows = desk.operator.connection.execute(
        "select reason, until, detail from trunkline.explain(%s)", (job,)
    )
    return [(reason, until, detail) for reason, until, detail in rows]


def test_explain_says_which_breaker_holds_a_job_and_until_when(desk: Desk) -> None:
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
    [notice] = desk.worker.connection.notifies(timeout=10, stop_after=1)
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
    [notice] = sleeper.notifies(timeout=10, stop_after=1)
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
    desk.worker.run_duty("sweep_gates()")
    assert state(desk) == "open"


def test_what_no_window_sees_any_more_goes(desk: Desk) -> None:
    opened(desk)
    desk.operator.value("select trunkline.reset_breaker('api')")
    counts = (
        "select (select count(*) from trunkline_internal.breaker_failures),"
        " (select count(*) from trunkline_internal.breakers)"
    )
    desk.worker.run_duty("sweep_gates()")
    assert desk.behind.execute(counts).fetchone() == (10, 1)
    desk.database.move_time("11 minutes")
    desk.worker.run_duty("sweep_gates(7)")
    assert desk.behind.execute(counts).fetchone() == (3, 1)
    desk.database.move_time("1 day")
    desk.worker.run_duty("sweep_gates()")
    assert desk.behind.execute(counts).fetchone() == (0, 0)
    assert state(desk) == "closed"


def test_health_tells_of_open_breakers(desk: Desk) -> None:
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
