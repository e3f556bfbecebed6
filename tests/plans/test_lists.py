"""A page of a list and a look at what is to come cost the same, however long the history is."""

from typing import Any

import psycopg
import pytest

from tests.plans.measuring import measure
from tests.support import databases
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.filling import fill
from tests.support.servers import Server

PRODUCER, WORKER = "trunkline_producer", "trunkline_worker"
# Each table and each partition of finished is asked for its next row before the merge knows which.
PAGE, PARTITIONS = 100, 20


@pytest.fixture
def behind(filled: Database) -> psycopg.Connection[Any]:
    return filled.superuser()


@pytest.mark.parametrize(
    ("arguments", "tables"),
    [
        ("", {"waiting", "running", "dead", "finished"}),
        ("p_task => 'work', p_queue => 'default'", {"waiting", "running", "dead", "finished"}),
        ("p_states => '{ready, scheduled}'", {"waiting"}),
        ("p_states => '{running}'", {"running"}),
        ("p_states => '{dead}'", {"dead"}),
        ("p_states => '{completed}', p_task => 'work'", {"finished"}),
        ("p_states => '{completed, dead}'", {"finished", "dead"}),
    ],
)
def test_a_page_reads_its_rows_by_id(
    behind: psycopg.Connection[Any], arguments: str, tables: set[str]
) -> None:
    """EX-61, RF-48: no table is read in full, one without the states asked for not at all."""
    work = measure(behind, PRODUCER, f"trunkline.list_jobs({arguments})")
    assert work.rows_out == PAGE
    assert work.sequential == {}
    read = {name: count for name, count in work.by_index.items() if count and name in tables}
    assert sum(read.values()) <= PAGE + PARTITIONS, work
    others = {"waiting", "running", "dead", "finished"} - tables
    assert {name: work.by_index.get(name, 0) for name in others} == dict.fromkeys(others, 0)


def test_a_page_in_the_middle_reads_no_more(behind: psycopg.Connection[Any]) -> None:
    middle = Calls(behind).value(
        "select job_id from trunkline.jobs where state = 'completed'"
        " order by job_id offset 10000 limit 1"
    )
    work = measure(behind, PRODUCER, "trunkline.list_jobs(p_before => %s)", middle)
    assert (work.rows_out, work.sequential) == (PAGE, {})
    jobs = ("waiting", "running", "dead", "finished")
    assert sum(work.by_index.get(name, 0) for name in jobs) <= PAGE + PARTITIONS, work


def test_sleep_reads_the_next_hundred_jobs(behind: psycopg.Connection[Any]) -> None:
    """Ten thousand jobs are scheduled; the ones of the queue asked for may be the last of them."""
    behind.execute("select trunkline.register_worker('w')")
    for queues in ("null", "'{default}'", "'{elsewhere}'"):
        work = measure(behind, WORKER, f"trunkline.sleep('w', {queues})")
        assert work.sequential == {}
        assert work.by_index["waiting"] <= PAGE, work


def test_a_page_touches_no_more_buffers_in_a_long_history(
    server: Server, template: str, filled: Database
) -> None:
    with databases.fresh(server, template) as small:
        few = small.superuser()
        fill(few, waiting=1000)
        low = measure(few, PRODUCER, "trunkline.list_jobs()").buffers
    high = measure(filled.superuser(), PRODUCER, "trunkline.list_jobs()").buffers
    assert high <= low * 1.5 + 100, (low, high)
