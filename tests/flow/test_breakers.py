"""Breakers: what fails too often stops, one probe tries whether it works again."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.support.calls import Calls
from tests.support.internals import rows


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


def deploying(desk: Desk) -> Desk:
    """The worker of the tests and one with other code serve the task."""
    for worker in ("w", "new"):
        desk.worker.value(
            "select trunkline.register_worker(p_worker => %s, p_pulse_interval => '1 hour',"
            " p_detail => %s)",
            worker,
            Jsonb({"signatures": {"work": worker}}),
        )
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
    """RF-85, overview 6.14: ten of fifty open it, ten of fifty-one do not."""
    calling(breaker(desk))
    desk.enqueue(60)
    ended(desk, "complete", good)
    ended(desk, "fail", 10)
    found = seen(desk)
    assert (found["state"], found["attempts"]) == (expected, good + 10)
    assert float(found["share"]) == pytest.approx(10 / (good + 10), abs=0.0001)


def test_jobs_that_succeed_after_a_retry_do_not_count(desk: Desk) -> None:
    """RF-85: each has failed once, and that is all there is to count."""
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


def test_deferred_released_and_cancelled_jobs_do_not_count(desk: Desk) -> None:
    """RF-130: not 429, deadlocks or other deferrals."""
    calling(breaker(deploying(desk)))
    desk.enqueue(72)
    ended(desk, "hand_over", 12)
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
    """RF-70, RF-87, RF-130: the recovery that opens it commits with it."""
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
    """RF-86: no full batch at a provider that may still be broken."""
    opened(desk)
    desk.database.move_time("50 seconds")
    assert desk.claim() == []
    desk.database.move_time("10 seconds")
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
    desk.database.move_time("50 seconds")
    assert desk.claim() == []
    desk.database.move_time("11 seconds")
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
        ("complete", {}),
        ("fail", {}),
        ("hand_over", {}),
    ],
)
def test_a_probe_without_a_verdict_leaves_its_place_to_the_next(
    desk: Desk, how: str, more: dict[str, Any]
) -> None:
    """Handed back, put off or cancelled: it says nothing about the provider."""
    opened(deploying(desk))
    desk.database.move_time("1 minute")
    [probe] = desk.claim()
    if how in {"acknowledge_cancel", "complete", "fail"}:
        desk.producer.change("cancel", probe.job)
        desk.worker.batch("heartbeat", probe.worker, [probe])
    desk.worker.batch(how, probe.worker, [probe], **more)
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


def test_each_key_has_its_own_breaker(desk: Desk) -> None:
    calling(breaker(desk, "model/{model}"), "model/{model}")
    desk.enqueue(20, payload={"model": "a"})
    ended(desk, "fail", 10)
    good = desk.enqueue(3, payload={"model": "b"})
    assert desk.claimed() == good
    assert (state(desk, "model/a"), state(desk, "model/b")) == ("open", "closed")


def test_a_task_has_its_own_breaker_in_addition_to_that_of_its_provider(desk: Desk) -> None:
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
    assert rows.count(desk.behind, "breaker_failures") == 0
    assert desk.operator.value("select count(*) from trunkline.breakers") == 0
