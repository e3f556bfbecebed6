"""What claims and duties find locked they skip: they return at once, and find it the next time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.support.databases import Database

# Stands for the id of the job that is held.
_JOB = "<held>"


@dataclass(frozen=True)
class Case:
    """Statements that arrange, hold in an open transaction, and call."""

    arrange: tuple[str, ...]
    hold: str
    call: str
    # What the call returns while the rows are held, and after they were let go.
    skipped: Any
    found: Any
    # How far the clock is moved before the rows are held.
    wait: str = "0"
    # Asks for what the call did, instead of what it returned.
    seen: str | None = None


def put(task: str = "work", more: str = "") -> tuple[str, str]:
    """A job whose row will be held, and another one."""
    enqueue = "select trunkline.enqueue('{}', p_correlation_id => '{}'{})"
    return enqueue.format(task, "held", more), enqueue.format(task, "free", more)


def _in_an_old_snapshot(tokens: int) -> tuple[str, ...]:
    """Change the limit in a way that leaves its jobs to the duty."""
    change = f"""select trunkline.set_limit('api', '{{"tokens_per_minute": {tokens}}}')"""
    return "begin transaction isolation level repeatable read", change, "commit"


MOVE = f"select trunkline.reprioritise({_JOB}, 7)"
CLAIM = "select array_agg(correlation_id) from trunkline.claim('w', p_limit => 9{})"
LIMIT = """select trunkline.set_limit('api', '{"tokens_per_minute": 100, "concurrency": 9}')"""
LIMITED = (
    "select trunkline.register_task('limited', p_limits => '{api}', p_cost => '{\"tokens\": 20}')"
)
FAIR = "select trunkline.set_limit('fair:api/{tenant}', '{}')"
FAIRLY = "select trunkline.register_task('fair', p_limits => array['fair:api/{tenant}'])"
STARTED = "select trunkline.claim('w', p_limit => 9)"
SWEEP = "select trunkline.sweep_buckets() is not null"
MAINTAIN = "select trunkline.maintain_partitions()"
LARGE = ", p_payload => jsonb_build_object('x', repeat('y', 3000))"
READABLE = "select count(*) from trunkline.jobs where length(payload ->> 'x') = 3000"
FAILED = (
    "select trunkline.fail('w', array_agg(job_id), '{1, 1}', p_retryable => '{f, f}')"
    " from trunkline.jobs"
)
LOWER = """select trunkline.set_limit('api', '{"tokens_per_minute": 10}')"""
TRIPPED = (
    """select trunkline.set_limit('a', '{"breaker_failures": 1}')""",
    """select trunkline.set_limit('b', '{"breaker_failures": 1}')""",
    "select trunkline.trip_breaker('a'), trunkline.trip_breaker('b')",
)
BLOCKED = "select count(*) from trunkline.jobs where state = 'blocked'"

CASES = {
    "claim": Case(put(), MOVE, CLAIM.format(""), ["free"], ["held"]),
    "claim with a position": Case(
        put(), MOVE, CLAIM.format(", p_position => '{}'"), ["free"], ["held"]
    ),
    "claim of fewer than there are": Case(
        (*put(), *put(more=", p_priority => -1")[1:]),
        MOVE,
        "select correlation_id from trunkline.claim('w')",
        "free",
        "held",
    ),
    "claim of limited jobs": Case(
        (LIMIT, LIMITED, *put("limited")), MOVE, CLAIM.format(""), ["free"], ["held"]
    ),
    "claim of a share group": Case(
        (FAIR, FAIRLY, *put("fair", ", p_tenant => 'a'")),
        MOVE,
        CLAIM.format(""),
        ["free"],
        ["held"],
    ),
    "promote": Case(
        put(more=", p_delay => '1 s'"), MOVE, "select trunkline.promote()", 1, 1, "2 s"
    ),
    "expire": Case(
        put(more=", p_expires_at => trunkline.clock() + interval '1 second'"),
        MOVE,
        "select rows from trunkline.run_duty('expire')",
        1,
        1,
        "2 s",
    ),
    "reclaim by lease": Case(
        (*put(), STARTED),
        f"select trunkline.progress('w', {_JOB}, 1, 5)",
        "select count(*) from trunkline.reclaim()",
        1,
        1,
        "1 hour",
    ),
    "reclaim of a gone worker": Case(
        ("select trunkline.register_worker('w')", *put(), STARTED),
        f"select trunkline.progress('w', {_JOB}, 1, 5)",
        "select count(*) from trunkline.reclaim()",
        1,
        1,
        "1 minute",
    ),
    "heartbeat": Case(
        (*put(), STARTED),
        f"select trunkline.progress('w', {_JOB}, 1, 5)",
        "select array_agg(extract(epoch from v.run_at - j.claimed_at)::integer order by"
        " j.correlation_id) from trunkline.heartbeat('w',"
        " (select array_agg(job_id) from trunkline.jobs), '{1, 1}') as v"
        " join trunkline.jobs as j on j.job_id = v.job_id",
        [310, 300],
        [310, 310],
        "10 s",
    ),
    "a worker whose pulse comes": Case(
        ("select trunkline.register_worker('held'), trunkline.register_worker('free')",),
        "select trunkline.pulse('held')",
        "select trunkline.reclaim()",
        ["free"],
        ["free", "held"],
        "1 minute",
        "select array_agg(worker order by worker) from trunkline.workers where state = 'gone'",
    ),
    "a sleeper that wakes": Case(
        (
            "select trunkline.register_worker('held'), trunkline.register_worker('free')",
            "select trunkline.sleep('held'), trunkline.sleep('free')",
        ),
        "select trunkline.wake('held')",
        "select trunkline.reclaim()",
        False,
        False,
        "1 minute",
        "select trunkline.wake('free')",
    ),
    "sweep_idempotency": Case(
        (
            "select trunkline.enqueue('work', p_idempotency_key => 'held')",
            "select trunkline.enqueue('work', p_idempotency_key => 'free')",
        ),
        "select trunkline.enqueue('work', p_idempotency_key => 'held')",
        "select trunkline.sweep_idempotency()",
        1,
        1,
        "8 days",
    ),
    "sweep of dead letters": Case(
        (*put(), STARTED, FAILED, "select trunkline.acknowledge(job_id) from trunkline.jobs"),
        f"select trunkline.acknowledge({_JOB})",
        MAINTAIN,
        1,
        0,
        "31 days",
        "select count(*) from trunkline.dead_letters",
    ),
    "payloads of waiting jobs": Case(
        put(more=LARGE), MOVE, MAINTAIN, 2, 2, "31 days", f"{READABLE} and state = 'ready'"
    ),
    "payloads of running jobs": Case(
        (*put(more=LARGE), STARTED),
        f"select trunkline.progress('w', {_JOB}, 1, 5)",
        MAINTAIN,
        2,
        2,
        "31 days",
        f"{READABLE} and state = 'running'",
    ),
    "payloads of dead jobs": Case(
        (*put(more=LARGE), STARTED, FAILED),
        f"select trunkline.acknowledge({_JOB})",
        MAINTAIN,
        2,
        2,
        "31 days",
        f"{READABLE} and state = 'dead'",
    ),
    "jobs to set aside": Case(
        (LIMIT, LIMITED, *put("limited"), *_in_an_old_snapshot(10)), MOVE, SWEEP, 0, 2, seen=BLOCKED
    ),
    "jobs to free": Case(
        (LIMIT, LIMITED, *put("limited"), LOWER, *_in_an_old_snapshot(100)),
        MOVE,
        SWEEP,
        1,
        0,
        seen=BLOCKED,
    ),
    "jobs to bury": Case(
        (
            LIMIT,
            LIMITED,
            "select trunkline.register_task('limited', p_dead_when_deferred => true)",
            *put("limited"),
            LOWER,
        ),
        MOVE,
        SWEEP,
        1,
        0,
        "25 hours",
        BLOCKED,
    ),
    "breakers long closed": Case(
        (*TRIPPED, "select trunkline.reset_breaker('a'), trunkline.reset_breaker('b')"),
        "select trunkline.trip_breaker('a')",
        SWEEP,
        1,
        0,
        "2 days",
        "select count(reason) from trunkline.breakers",
    ),
    "breakers ahead of the clock": Case(
        TRIPPED,
        "select trunkline.trip_breaker('a')",
        SWEEP,
        1,
        0,
        "-1 day",
        "select count(*) from trunkline.breakers"
        " where changed_at > trunkline.clock() + interval '1 minute'",
    ),
    "the ledger": Case((), "select trunkline.after_restore()", SWEEP, True, True),
    "a schedule": Case(
        (
            "select trunkline.set_schedule('held', '* * * * *', 'work')",
            "select trunkline.set_schedule('free', '* * * * *', 'work')",
        ),
        "select trunkline.pause_schedule('held')",
        "select array_agg(schedule) from trunkline.run_schedules()",
        ["free"],
        ["held"],
        "61 s",
    ),
    "a duty": Case(
        (),
        "select trunkline.enable_duty('promote', true)",
        "select ran from trunkline.run_duty('promote')",
        False,
        True,
    ),
}


def _value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return row[0] if row is not None else None


@pytest.mark.parametrize("name", CASES)
def test_a_held_row_is_skipped_and_found_later(database: Database, name: str) -> None:
    case = CASES[name]
    desk = Desk(database)
    desk.task()
    database.draw(0.5)
    database.move_time("0")
    for statement in case.arrange:
        desk.behind.execute(statement.encode())
    database.move_time(case.wait)
    if case.call == MAINTAIN:
        # Partitions of the days since then, which are attached under a lock.
        for retention in ("'90 days'", "null"):
            for setting in ("finished_retention", "dead_retention"):
                change = f"select trunkline.set_setting('{setting}', {retention})"
                desk.behind.execute(change.encode())
            if retention != "null":
                desk.behind.execute(MAINTAIN.encode())
    warnings: list[str] = []
    desk.behind.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))
    job = _value(desk.behind, "select job_id from trunkline.jobs where correlation_id = 'held'")
    holder = database.superuser(autocommit=False)
    holder.execute(case.hold.replace(_JOB, f"'{job}'").encode())
    # Who waits fails at once. A duty warns about it.
    desk.behind.execute("set lock_timeout = '1s'")

    def call() -> Any:
        returned = _value(desk.behind, case.call)
        return _value(desk.behind, case.seen) if case.seen else returned

    assert (call(), warnings) == (case.skipped, [])
    holder.rollback()
    assert (call(), warnings) == (case.found, [])
