"""The statements behind the functions use their indexes, whatever the statistics say."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.plans.measuring import Work, measure
from tests.support import databases
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.filling import DUE, RUNNING, STALE, fill
from tests.support.internals.jobs import first_of_lane, last_of_lane
from tests.support.servers import Server

WORKER, PRODUCER, OPERATOR = "trunkline_worker", "trunkline_producer", "trunkline_operator"


@pytest.fixture
def behind(filled: Database) -> psycopg.Connection[Any]:
    return filled.superuser()


def _running(superuser: psycopg.Connection[Any], count: int) -> tuple[list[Any], list[int]]:
    rows = superuser.execute(
        "select job_id, attempt from trunkline.jobs where state = 'running'"
        " and lease_expires_at > now() order by md5(job_id::text) limit %s",
        (count,),
    ).fetchall()
    return [row[0] for row in rows], [row[1] for row in rows]


def _any(superuser: psycopg.Connection[Any], *states: str) -> Any:
    return Calls(superuser).value(
        "select job_id from trunkline.jobs where state = any(%s)"
        " order by md5(job_id::text) limit 1",
        list(states),
    )


def _check(work: Work, rows: int, **most: int) -> None:
    """No table is read from end to end, and of each no more rows than said."""
    assert work.rows_out == rows
    assert work.sequential == {}
    for table, limit in most.items():
        assert work.by_index.get(table, 0) <= limit, (table, work)


@pytest.mark.parametrize("position", [None, "{}"], ids=["full look", "position"])
def test_claim_reads_what_it_takes(behind: psycopg.Connection[Any], position: str | None) -> None:
    """CP-30, EX-20: a hundred of 50,000 by the index on (queue, lane, sequence)."""
    # The due jobs are promoted in passing, as many as are claimed.
    work = measure(behind, WORKER, "trunkline.claim('w', null, 100, null, %s)", position)
    # Those with a unique key are looked up once more, by their ids.
    _check(work, 100, waiting=600, running=100, finished=0)


def test_claim_of_one_task_reads_no_more(behind: psycopg.Connection[Any]) -> None:
    work = measure(behind, WORKER, "trunkline.claim('w', array['default'], 10, array['work'])")
    _check(work, 10, waiting=500, running=10)


@pytest.mark.parametrize(
    ("function", "limits"),
    [
        ("complete", {"waiting": 0, "running": 100, "finished": 0}),
        ("fail", {"waiting": 0, "running": 400, "finished": 0}),
        ("release", {"waiting": 0, "running": 500, "finished": 0}),
        ("snooze", {"waiting": 0, "running": 400, "finished": 0}),
        ("acknowledge_cancel", {"waiting": 0, "running": 400, "finished": 0}),
        ("heartbeat", {"waiting": 0, "running": 300, "finished": 0}),
    ],
)
@pytest.mark.parametrize("count", [1, 100])
def test_batch_calls_find_their_rows_by_id(
    behind: psycopg.Connection[Any], function: str, limits: dict[str, int], count: int
) -> None:
    jobs, attempts = _running(behind, count)
    work = measure(behind, WORKER, f"trunkline.{function}('w', %s, %s)", jobs, attempts)
    share = {table: limit * count // 100 for table, limit in limits.items()}
    _check(work, count, **share)


def test_complete_keeps_no_column_that_it_does_not_read(behind: psycopg.Connection[Any]) -> None:
    """Its statement stores the rows that it deletes; with all columns it takes 3 % longer."""
    body = Calls(behind).value("select prosrc from pg_proc where proname = 'complete'")
    kept = body.partition("returning")[2].partition("kept as")[0]
    assert "r.job_id" in kept
    assert "r.*" not in kept


def test_a_stale_completion_reads_few_partitions(behind: psycopg.Connection[Any]) -> None:
    """The answer "already" or "lost" comes from the index on finished jobs."""
    rows = behind.execute(
        "select job_id, attempt from trunkline.jobs where state = 'completed' limit 10"
    ).fetchall()
    jobs, attempts = [row[0] for row in rows], [row[1] for row in rows]
    work = measure(behind, WORKER, "trunkline.complete('w', %s, %s)", jobs, attempts)
    _check(work, 10, running=0, waiting=0, finished=20)


def test_promote_reads_what_is_due(behind: psycopg.Connection[Any]) -> None:
    work = measure(behind, WORKER, "trunkline.promote(100)")
    _check(work, 1, waiting=400, running=0)
    all_due = measure(behind, WORKER, "trunkline.promote(1000)")
    _check(all_due, 1, waiting=4 * DUE, running=0)


def test_reclaim_reads_what_is_stale(behind: psycopg.Connection[Any]) -> None:
    """RC-15: bounded by what expired, not by what runs."""
    work = measure(behind, WORKER, "trunkline.reclaim(100)")
    _check(work, 100, running=600, waiting=0)
    everything = measure(behind, WORKER, "trunkline.reclaim(500)")
    _check(everything, STALE, running=6 * STALE, waiting=0)
    assert STALE * 6 < RUNNING


@pytest.mark.parametrize("state", ["ready", "scheduled", "running", "completed", "dead"])
def test_one_job_is_found_by_its_id(behind: psycopg.Connection[Any], state: str) -> None:
    job = _any(behind, state)
    for role, function in [(PRODUCER, "job"), (OPERATOR, "cancel")]:
        work = measure(behind, role, f"trunkline.{function}(%s)", job)
        assert work.sequential == {}, (function, work)
        assert sum(work.by_index.get(t, 0) for t in ("waiting", "running", "finished", "dead")) <= 8


def test_explain_counts_a_bounded_part_of_the_queue(behind: psycopg.Connection[Any]) -> None:
    """What stands before a job is counted up to a thousand, wherever the job is."""
    for job in (last_of_lane(behind, 10), first_of_lane(behind, -10)):
        work = measure(behind, PRODUCER, "trunkline.explain(%s)", job)
        assert sum(work.sequential.values()) + work.by_index["waiting"] <= 1010, work


def test_a_duplicate_is_found_by_its_key(behind: psycopg.Connection[Any]) -> None:
    """EX-14: the path of a repeated request reads a handful of rows."""
    work = measure(behind, PRODUCER, "trunkline.enqueue('work', p_unique_key => 'key 40000')")
    _check(work, 1, waiting=4, unique_keys=4, running=0)
    raising = "trunkline.enqueue('work', p_unique_key => 'key 40000', p_priority => 9)"
    _check(measure(behind, PRODUCER, raising), 1, waiting=6, unique_keys=4, running=0)


def test_reprioritise_finds_its_job_by_id(behind: psycopg.Connection[Any]) -> None:
    job = _any(behind, "ready", "scheduled")
    _check(measure(behind, OPERATOR, "trunkline.reprioritise(%s, 20)", job), 1, waiting=4)


@pytest.mark.parametrize(
    "call",
    [
        lambda _: ("trunkline.claim('w', null, 100)",),
        lambda _: ("trunkline.claim('w', null, 100, null, '{}')",),
        lambda db: ("trunkline.complete('w', %s, %s)", *_running(db, 100)),
        lambda db: ("trunkline.heartbeat('w', %s, %s)", *_running(db, 100)),
        lambda _: ("trunkline.reclaim(100)",),
        lambda _: ("trunkline.promote(100)",),
    ],
    ids=["claim", "claim from a position", "complete", "heartbeat", "reclaim", "promote"],
)
def test_buffers_do_not_grow_with_the_backlog(
    server: Server, template: str, filled: Database, call: Callable[[Any], tuple[Any, ...]]
) -> None:
    """A hundred jobs cost the same pages among 1,000 waiting and among 50,000."""
    with databases.fresh(server, template) as small:
        Calls(small.connect(PRODUCER)).register("work")
        few, many = small.superuser(), filled.superuser()
        fill(few, waiting=1000)
        statement, *arguments = call(few)
        low = measure(few, WORKER, statement, *arguments).buffers
    statement, *arguments = call(many)
    # Index pages of one more level for each row that is looked up or written, no more. Autovacuum
    # may come by and leave pages of its own to look at, so the best of three counts.
    highs = [measure(many, WORKER, statement, *arguments).buffers for _ in range(3)]
    assert min(highs) <= low * 1.5 + 200, (low, highs)
