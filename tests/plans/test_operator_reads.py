"""What operators read costs the same for any backlog: each view, reading function and command.

The lists are in bench/backlog/reads.py, which `make bench-backlog` measures in seconds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import click
import psycopg
import pytest

from bench.backlog import reads
from bench.internals import stock
from tests.cli.driving import Cli
from tests.support import databases
from tests.support.databases import Database
from tests.support.internals.reads import of_all_sessions
from tests.support.servers import Server
from tests.support.waiting import until
from trunkline.cli.main import cli as whole

# Nine kinds of jobs, of each more than is counted (10,000); dead ones more than searched (20,000).
SMALL, LARGE = 100_000, 300_000
# More of them than dead_letter_groups reads of all groups (50,000), although a group is read up to
# 10,000; 30,000 of the smaller number are in one group, the others in nineteen.
SMALL_DEAD, LARGE_DEAD = 75_000, 150_000
# Of set-aside jobs too, over two tasks.
SMALL_ASIDE, LARGE_ASIDE = 25_000, 100_000
# What runs, and the jobs of the last hour and day, are the same in both.
GROWTH = 1.2
# The most that any of them reads: five queues, four tables that are searched, and what runs.
MOST_ROWS = 400_000

_OTHERS = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True)
class Stock:
    """A database with so many waiting jobs, and two of them."""

    database: Database
    subjects: dict[str, UUID]
    watch: psycopg.Connection[Any]

    def cost(self, look: Callable[[], object]) -> tuple[int, int]:
        """Rows and buffers of a look by a session of its own, the least of three."""
        return min(self._cost(look) for _ in range(3))

    def _cost(self, look: Callable[[], object]) -> tuple[int, int]:
        before = self._counters()
        look()
        after = self._counters()
        return after[0] - before[0], after[1] - before[1]

    def _counters(self) -> tuple[int, int]:
        # A session reports what it has read when it ends.
        until(
            lambda: self.watch.execute(_OTHERS).fetchone() == (0,),
            "the sessions have ended",
        )
        return of_all_sessions(self.watch, *reads.SCHEMAS)

    def read(self, query: str, tenant: str = "") -> Callable[[], object]:
        def look() -> None:
            with psycopg.connect(self.database.superuser_dsn, autocommit=True) as connection:
                connection.execute("set session authorization trunkline_operator")
                connection.execute("select set_config('trunkline.tenant', %s, false)", (tenant,))
                connection.execute(f"select * from {query}".encode(), self.subjects).fetchall()

        return look

    def change(self, batch: str) -> Callable[[], object]:
        def change() -> None:
            with (
                psycopg.connect(self.database.superuser_dsn, autocommit=True) as connection,
                connection.transaction(force_rollback=True),
            ):
                connection.execute("set local session authorization trunkline_operator")
                connection.execute(f"select * from {batch}".encode()).fetchall()

        return change

    def command(self, command: str) -> Callable[[], object]:
        cli = Cli(self.database.dsn)

        def look() -> None:
            # Checks end with 1 when they find something.
            assert cli.run(*(command % self.subjects).split()).exit_code in {0, 1}, command

        return look


@pytest.fixture(scope="module")
def stocks(server: Server, template: str) -> Iterator[tuple[Stock, Stock]]:
    with databases.fresh(server, template) as one, databases.fresh(server, template) as other:
        yield (
            _stock(one, SMALL, SMALL_ASIDE, SMALL_DEAD),
            _stock(other, LARGE, LARGE_ASIDE, LARGE_DEAD),
        )


def _stock(database: Database, waiting: int, set_aside: int, dead: int) -> Stock:
    stock.install_profiles(database.dsn)
    with psycopg.connect(database.superuser_dsn, autocommit=True) as superuser:
        finished = waiting // 2
        stock.fill(superuser, waiting=waiting, set_aside=set_aside, finished=finished, dead=dead)
        superuser.execute("vacuum analyze")
        subjects = reads.subjects(superuser)
    return Stock(database, subjects, database.superuser())


def test_every_view_and_function_is_measured_or_has_a_reason(
    stocks: tuple[Stock, Stock],
) -> None:
    views, functions = reads.names(stocks[0].watch)
    assert set(reads.NOT_VIEWS) <= set(views)
    assert set(reads.VIEWS) <= set(views)
    listed = set(reads.FUNCTIONS) | set(reads.NOT_FUNCTIONS)
    assert not listed ^ set(functions), " ".join(sorted(listed ^ set(functions)))
    assert not set(reads.FUNCTIONS) & set(reads.NOT_FUNCTIONS)


def test_every_command_is_measured_or_has_a_reason() -> None:
    assert set(reads.COMMANDS) | set(reads.NOT_COMMANDS) == set(_commands(whole))
    assert not set(reads.COMMANDS) & set(reads.NOT_COMMANDS)


def test_every_reason_is_a_text_and_every_call_is_in_a_list() -> None:
    reasons: list[object] = []
    for named in (reads.NOT_VIEWS, reads.NOT_FUNCTIONS, reads.NOT_COMMANDS):
        reasons += named.values()
    assert [reason for reason in reasons if not isinstance(reason, str)] == []
    calls: list[object] = [*reads.FUNCTIONS.values(), *reads.COMMANDS.values()]
    assert [every for every in calls if not isinstance(every, list) or not every] == []


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _commands(inner, (*path, name))


def test_views_and_functions_read_no_more_from_a_larger_backlog(
    stocks: tuple[Stock, Stock],
) -> None:
    small, large = stocks
    queries = reads.queries(small.watch)
    assert len(queries) > 30
    found = {
        name: (small.cost(small.read(query)), large.cost(large.read(query)))
        for name, query in queries.items()
    }
    assert _grown(found) == {}, "\n".join(f"{k}: {v}" for k, v in _grown(found).items())


def test_a_batch_of_each_bulk_change_reads_no_more_from_a_larger_backlog(
    stocks: tuple[Stock, Stock],
) -> None:
    small, large = stocks
    found = {
        batch: (small.cost(small.change(batch)), large.cost(large.change(batch)))
        for batch in reads.BATCHES
    }
    assert _grown(found) == {}, "\n".join(f"{k}: {v}" for k, v in _grown(found).items())


def test_the_batches_are_of_every_bulk_change(stocks: tuple[Stock, Stock]) -> None:
    rows = stocks[0].watch.execute(
        "select 'trunkline.' || proname from pg_proc"
        " where pronamespace = 'trunkline'::regnamespace"
        " and prorettype = 'trunkline.bulk_change'::regtype"
    )
    assert {batch.partition("(")[0] for batch in reads.BATCHES} == {name for (name,) in rows}


def test_a_session_of_one_tenant_reads_no_more_from_a_larger_backlog(
    stocks: tuple[Stock, Stock],
) -> None:
    """Where none of the jobs is its own."""
    small, large = stocks
    found = {
        name: (
            small.cost(small.read(f"trunkline.{name}", "acme")),
            large.cost(large.read(f"trunkline.{name}", "acme")),
        )
        for name in (
            *("queues", "health()", "find_jobs()", "deferred_jobs()", "operator_log"),
            *("search_jobs()", "count_jobs()", "dead_letter_groups()"),
            "resolve_job(left(%(job)s::text, 8))",
        )
    }
    # The orders of the stock belong to the tenant `stock`.
    found |= {
        f"studio.{view} of {tenant}": (
            small.cost(small.read(f"studio.{view} where {column} = %(workflow)s", tenant)),
            large.cost(large.read(f"studio.{view} where {column} = %(workflow)s", tenant)),
        )
        for view, column in (("jobs", "id"), ("my_tasks", "job_id"), ("job_artifacts", "job_id"))
        for tenant in ("acme", "stock")
    }
    assert _grown(found) == {}, "\n".join(f"{k}: {v}" for k, v in _grown(found).items())


def test_commands_read_no_more_from_a_larger_backlog(stocks: tuple[Stock, Stock]) -> None:
    small, large = stocks
    found = {
        command: (small.cost(small.command(command)), large.cost(large.command(command)))
        for command in reads.commands()
    }
    assert _grown(found) == {}, "\n".join(f"{k}: {v}" for k, v in _grown(found).items())


def _grown(found: dict[str, tuple[tuple[int, int], tuple[int, int]]]) -> dict[str, Any]:
    """Those that read more rows or buffers from the larger one than from the smaller one."""
    return {
        name: (low, high)
        for name, (low, high) in found.items()
        if high[0] > MOST_ROWS
        or high[0] > GROWTH * low[0] + 2000
        or high[1] > GROWTH * low[1] + 800
    }
