"""What duties promise: bounds, an order, no waiting, and a record that success clears."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.pause import Pauses, ended_or_blocked
from tests.support.waiting import DEADLINE

DUTIES = (
    "advance_workflows",
    "decide_workers",
    "expand_workflows",
    "expire",
    "maintain_partitions",
    "promote",
    "reclaim",
    "run_schedules",
    "sweep_artifacts",
    "sweep_buckets",
    "sweep_idempotency",
    "sweep_labels",
    "sweep_live",
    "sweep_operator_log",
    "sweep_steps",
    "sweep_workflows",
)


class Hands:
    """Everybody who has to do with duties."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.producer, self.worker, self.operator = (
            Calls(database.connect(f"trunkline_{role}"))
            for role in ("producer", "worker", "operator")
        )
        self.observer = database.superuser()
        self.producer.register("work")

    def duty(self, name: str) -> dict[str, Any]:
        cursor = self.operator.connection.execute(
            "select * from trunkline.duties where duty = %s", (name,)
        )
        row = cursor.fetchone()
        assert row is not None
        assert cursor.description is not None
        return dict(zip([column.name for column in cursor.description], row, strict=True))

    def is_well(self, name: str) -> bool:
        found: bool = self.operator.value(
            'select ok from trunkline.health() where "check" = %s', f"duty {name}"
        )
        return found

    def dead(self, jobs: int) -> list[Any]:
        """So many dead letters that somebody has acknowledged."""
        self.producer.fill(jobs)
        attempts = self.worker.claim("w", jobs).attempts
        self.worker.batch("fail", "w", attempts, retryable=[False] * jobs)
        self.operator.connection.execute(
            "select trunkline.acknowledge(job_id) from trunkline.dead_letters"
        )
        return [attempt.job for attempt in attempts]

    def letters(self) -> int:
        found: int = self.operator.value("select count(*) from trunkline.dead_letters")
        return found

    def without_waiting(self, calls: Calls, call: Callable[[], Any]) -> Any:
        """Call something that must wait for nobody, and return its result."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(call)
            waits = ended_or_blocked(self.observer, calls.connection, future)
            if waits:
                calls.connection.cancel()
            assert waits == []
            return future.result(DEADLINE)


@pytest.fixture
def hands(database: Database) -> Hands:
    return Hands(database)


@pytest.mark.parametrize("name", DUTIES)
def test_a_success_ends_a_row_of_failures(hands: Hands, name: str) -> None:
    """RC-38, CP-35: three in a row raise the alarm, the next success clears it."""
    pauses = Pauses(hands.database)
    pauses.paused.connection.execute("set client_min_messages = error")

    def run(calls: Calls) -> list[Any]:
        return calls.connection.execute("select trunkline.run_duty(%s)", (name,)).fetchall()

    run(hands.worker)
    assert hands.is_well(name)
    # The first reading at which the duty itself notes the failure instead of its caller.
    reading = next(n for n in count(1) if pauses.fail_at(n, run) is not None)
    assert hands.duty(name)["failures_in_a_row"] == 1
    assert hands.is_well(name), "one is no alarm"
    for failures in (2, 3):
        pauses.fail_at(reading, run)
        found = hands.duty(name)
        assert (found["failures"], found["failures_in_a_row"]) == (failures, failures)
        assert found["last_error"]["message"] == "the clock failed"
    assert not hands.is_well(name)
    run(hands.worker)
    found = hands.duty(name)
    assert (found["failures"], found["failures_in_a_row"], found["last_error"]) == (3, 0, None)
    assert hands.is_well(name)
    pauses.fail_at(reading, run)
    found = hands.duty(name)
    assert (found["failures"], found["failures_in_a_row"]) == (4, 1)


def test_partitions_are_maintained_after_all_other_duties(hands: Hands) -> None:
    """A partition that it attaches stays locked until the transaction ends."""
    # Installing made the first partitions: now all of them are due.
    hands.database.move_time("1 day")
    rows = hands.worker.connection.execute("select duty, ran from trunkline.run_duties()")
    ran = rows.fetchall()
    assert sorted(duty for duty, _ in ran) == sorted(DUTIES)
    assert all(has_run for _, has_run in ran)
    assert ran[-1][0] == "maintain_partitions"


def test_only_duties_that_are_due_run(hands: Hands) -> None:
    def run() -> set[str]:
        rows = hands.worker.connection.execute("select duty from trunkline.run_duties()")
        return {row[0] for row in rows.fetchall()}

    periods = dict(
        hands.operator.connection.execute("select duty, every from trunkline.duties").fetchall()
    )
    passed = max(periods.values())
    hands.database.move_time(f"{passed.total_seconds()} seconds")
    assert run() == set(DUTIES)
    # One whose period is longer than the shortest one is not due yet.
    shortest = min(periods.values())
    hands.database.move_time(f"{shortest.total_seconds()} seconds")
    again = run()
    assert {duty for duty, every in periods.items() if every == shortest} <= again
    assert not {duty for duty, every in periods.items() if every >= 20 * shortest} & again


@pytest.mark.parametrize("audit", [True, False])
def test_only_profiles_with_audited_tasks_copy_events_before_they_go(
    hands: Hands, audit: bool
) -> None:
    """What cannot be copied stays; events of tasks without an audit wait for nobody."""
    hands.observer.execute(
        "create schema shop;"
        " create function shop.keep_events(p_before timestamptz) returns bigint"
        " language plpgsql as $$ begin raise exception 'no room'; end $$;"
        " alter function shop.keep_events(timestamptz) owner to trunkline_owner"
    )
    hands.worker.connection.execute("set client_min_messages = error")
    hands.producer.register("sell", profile="shop", audit=audit)
    hands.dead(1)
    events = "select count(*) from trunkline.events"
    before = hands.operator.value(events)
    assert before > 0
    hands.operator.value("select trunkline.set_setting('events_retention', '1 day')")
    hands.database.move_time("30 days")
    for _ in range(3):
        hands.worker.run_duty("maintain_partitions()")
    assert hands.operator.value(events) == (before if audit else 0)


def test_old_dead_letters_go_a_bounded_number_at_a_time(hands: Hands) -> None:
    """A run after a long pause must not hold its locks for minutes."""
    hands.dead(1200)
    hands.database.move_time("31 days")
    hands.worker.run_duty("maintain_partitions()")
    left = hands.letters()
    assert 0 < left < 1200
    hands.worker.run_duty("maintain_partitions()")
    assert hands.letters() < left


def test_a_dead_letter_in_use_stays_and_stops_no_other(hands: Hands) -> None:
    first, *_ = hands.dead(3)
    # Before the letters are old enough, so that no partition has to be made while one is in use.
    hands.database.move_time("29 days")
    hands.worker.run_duty("maintain_partitions()")
    assert hands.letters() == 3
    hands.database.move_time("2 days")
    using = Calls(hands.database.connect("trunkline_operator", autocommit=False))
    using.change("retry", first)
    hands.worker.run_duty("maintain_partitions()")
    assert hands.duty("maintain_partitions")["failures"] == 0
    using.connection.rollback()
    assert hands.operator.value("select array_agg(job_id) from trunkline.dead_letters") == [first]
    hands.worker.run_duty("maintain_partitions()")
    assert hands.letters() == 0


def test_expired_keys_go_a_bounded_number_at_a_time(hands: Hands) -> None:
    keys = [{"task": "work", "idempotency_key": str(n)} for n in range(5)]
    hands.producer.enqueue_many(keys)
    assert hands.worker.run_duty("sweep_idempotency(10)") == 0
    hands.database.move_time("31 days")
    counts = [hands.worker.run_duty("sweep_idempotency(2)") for _ in range(4)]
    assert counts == [2, 2, 1, 0]


def test_an_expired_key_that_somebody_takes_is_not_waited_for(hands: Hands) -> None:
    """Nor is it removed afterwards: it belongs to the new job."""
    keys = [{"task": "work", "idempotency_key": str(n)} for n in range(3)]
    hands.producer.enqueue_many(keys)
    hands.database.move_time("31 days")
    taking = Calls(hands.database.connect("trunkline_producer", autocommit=False))
    job = taking.enqueue(idempotency_key="0")
    assert job.created
    swept = hands.without_waiting(
        hands.worker, lambda: hands.worker.run_duty("sweep_idempotency()")
    )
    assert swept == 2
    taking.connection.commit()
    assert hands.worker.run_duty("sweep_idempotency()") == 0
    again = hands.producer.enqueue(idempotency_key="0")
    assert (again.job_id, again.created) == (job.job_id, False)


def test_due_jobs_are_promoted_a_bounded_number_at_a_time(hands: Hands) -> None:
    hands.producer.fill(5, delay="1 minute")
    hands.database.move_time("2 minutes")
    assert [hands.worker.run_duty("promote(2)") for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize("call", ["promote()", "reclaim()"])
def test_a_job_in_use_is_not_waited_for(hands: Hands, call: str) -> None:
    """Somebody cancels one of the jobs that are due or stale."""
    if call == "promote()":
        jobs = hands.producer.fill(3, delay="1 minute")
        hands.database.move_time("2 minutes")
    else:
        hands.producer.fill(3)
        jobs = hands.worker.claim("w", 3).jobs
        hands.database.move_time("1 hour")
    using = Calls(hands.database.connect("trunkline_operator", autocommit=False))
    using.change("cancel", jobs[0])
    hands.without_waiting(
        hands.worker,
        lambda: hands.worker.connection.execute(f"select trunkline.{call}".encode()).fetchall(),
    )
    duty = hands.duty(call.removesuffix("()"))
    assert (duty["rows"], duty["failures"]) == (2, 0)
    using.connection.rollback()
    hands.worker.connection.execute(f"select trunkline.{call}".encode())
    assert hands.duty(call.removesuffix("()"))["rows"] == 1
