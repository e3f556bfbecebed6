"""Enqueue commits and rolls back with the caller's own work; held snapshots stop nothing."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.support import guard
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import breaks, jobs, rows

ISOLATION_LEVEL = "TL016"

# Every function that changes the state of a job or does a duty, with arguments it would accept.
CHANGES = [
    "claim('w')",
    "claim('w', p_position => '{}')",
    "heartbeat('w', '{}', '{}')",
    "complete('w', '{}', '{}')",
    "fail('w', '{}', '{}')",
    "snooze('w', '{}', '{}')",
    "release('w', '{}', '{}')",
    "acknowledge_cancel('w', '{}', '{}')",
    "progress('w', gen_random_uuid(), 1, 50)",
    "cancel(gen_random_uuid())",
    "retry(gen_random_uuid())",
    "discard(gen_random_uuid())",
    "acknowledge(gen_random_uuid())",
    "reprioritise(gen_random_uuid(), 1)",
    "reclaim()",
    "promote()",
    "maintain_partitions()",
    "sweep_buckets()",
    "sweep_idempotency()",
    "run_duties()",
    "run_schedules()",
    "run_duty('promote')",
    "hand_over('w', '{}', '{}')",
    "after_restore()",
    "acquire('limit')",
    "observe_limit('limit', '{}')",
    "trip_breaker('limit')",
    "reset_breaker('limit')",
]


def test_a_rolled_back_enqueue_never_was(
    guarded: Database, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """Invariant 3: no job, no key, no event; the keys are free for the next."""
    inside = Calls(guarded.connect("trunkline_producer", autocommit=False))
    inside.register("work", audit=True)
    inside.connection.commit()
    inside.enqueue(unique_key="u", idempotency_key="i", payload={"text": "x" * 5000})
    inside.enqueue_many([{"task": "work"}, {"task": "work", "unique_key": "v"}])
    assert worker.claim("w", 10).jobs == []
    inside.connection.rollback()
    assert worker.claim("w", 10).jobs == []
    for table in ("unique_keys", "idempotency_keys", "bodies", "events"):
        assert rows.count(observer, table) == 0
    assert guard.job_counts(observer).total == 0
    assert inside.enqueue(unique_key="u", idempotency_key="i").created


def test_a_committed_enqueue_is_claimable_with_the_callers_data(
    guarded: Database, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """Invariant 3: the job and what the caller wrote are seen together."""
    observer.execute("create table public.orders (id int); grant all on public.orders to public")
    inside = Calls(guarded.connect("trunkline_producer", autocommit=False))
    inside.connection.execute("insert into public.orders values (1)")
    job = inside.enqueue().job_id
    assert worker.claim("w").jobs == []
    inside.connection.commit()
    assert worker.claim("w").jobs == [job]
    assert Calls(observer).value("select count(*) from public.orders") == 1


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_enqueue_works_on_a_held_snapshot(guarded: Database, worker: Calls, level: str) -> None:
    """A caller's transaction keeps its isolation; its jobs commit with it."""
    inside = Calls(guarded.connect("trunkline_producer", autocommit=False))
    inside.connection.execute(f"set transaction isolation level {level}")
    one = inside.enqueue(unique_key="k").job_id
    two = inside.enqueue_many([{"task": "work", "priority": -1}])[0].job_id
    assert inside.enqueue(unique_key="k").job_id == one
    inside.connection.commit()
    assert worker.claim("w", 10).jobs == [one, two]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_what_changes_state_refuses_a_held_snapshot(guarded: Database, level: str) -> None:
    """TL016: on an old snapshot these would decide on rows that are no more."""
    superuser = guarded.superuser(autocommit=False)
    codes = {}
    for call in CHANGES:
        superuser.execute(f"set transaction isolation level {level}")
        try:
            superuser.execute(f"select * from trunkline.{call}")
        except psycopg.Error as error:
            codes[call] = error.sqlstate
        superuser.rollback()
    assert codes == dict.fromkeys(CHANGES, ISOLATION_LEVEL)


def test_a_held_snapshot_stops_nothing(
    guarded: Database, producer: Calls, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """A report or a backup sees the past; the queue goes on, from kept positions too."""
    before = producer.fill(5)
    report = guarded.superuser(autocommit=False)
    report.execute("set transaction isolation level repeatable read")
    assert guard.job_counts(report) == (5, 0, 0, 0, 5)
    position: dict[str, Any] | None = {}
    done = 0
    for _ in range(20):
        producer.fill(5)
        producer.enqueue(delay="1 second")
        guarded.move_time("2 seconds")
        claim = worker.claim("w", 50, position=position)
        position = claim.position
        assert len(claim.rows) == (11 if not done else 6)
        kept = claim.attempts[1:]
        worker.batch("complete", "w", kept)
        worker.batch("fail", "w", claim.attempts[:1], retryable=[False])
        done += len(claim.rows)
    stale = worker.claim("w", 1).attempts or worker.claim("w", 1).attempts
    assert stale == []
    producer.enqueue()
    assert len(worker.claim("w", 1, position=position).rows) == 1
    guarded.move_time("1 hour")
    assert len(worker.reclaim()) == 1
    assert guard.job_counts(observer) == (1, 0, done - 20, 20, done + 1)
    assert guard.job_counts(report) == (5, 0, 0, 0, 5)
    assert jobs.waiting_in_order(report) == before


def _commit(connection: psycopg.Connection[Any], statements: list[str]) -> None:
    for statement in statements:
        connection.execute(statement.encode())
    connection.commit()


def test_the_guard_refuses_what_the_engine_never_does(guarded: Database, producer: Calls) -> None:
    """Invariants 1 and 2: the guard itself, tried on changes made behind the engine's back."""
    job = producer.enqueue().job_id
    superuser = guarded.superuser(autocommit=False)
    for code, attack in breaks.illegal_changes().items():
        with pytest.raises(psycopg.Error) as refused:
            _commit(superuser, attack)
        assert refused.value.sqlstate == code, attack
        superuser.rollback()
    assert producer.value("select state from trunkline.job(%s)", job) == "ready"
    assert producer.value("select count(*) from trunkline.job(%s)", uuid4()) == 0
