"""A lowered limit over a long backlog: every call reads a bounded number of rows.

The bounds are the same at both sizes.
"""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.plans.measuring import Work, measure
from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import Server

OPERATOR, PRODUCER, WORKER = "trunkline_operator", "trunkline_producer", "trunkline_worker"
FEW, MANY = 10_000, 20_000
LOWER = """trunkline.set_limit('api', '{"tokens_per_minute": 900}')"""
RAISE = """trunkline.set_limit('api', '{"tokens_per_minute": 1000000}')"""
CLAIM = "trunkline.claim('w', p_limit => 10)"
SWEEP = "trunkline.sweep_buckets()"

_SETTING = """
select
  trunkline.set_limit('api', '{"tokens_per_minute": 1000000}'),
  trunkline.register_task('bulk', p_limits => '{api}', p_cost => '{"tokens": 1000}'),
  trunkline.register_task('small', p_limits => '{api}', p_cost => '{"tokens": 1}')
"""
_FILLING = """
select trunkline.enqueue_batch('bulk', (select jsonb_agg('{}'::jsonb) from generate_series(1, %s)))
"""


@pytest.fixture(scope="module", params=[FEW, MANY])
def backlog(server: Server, template: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    """So many jobs that cost more than the limit will give, and one behind them that fits."""
    with databases.fresh(server, template) as database:
        superuser = database.superuser()
        superuser.execute(_SETTING.encode())
        superuser.execute(_FILLING.encode(), (request.param,))
        superuser.execute("select trunkline.enqueue('small')")
        superuser.execute("analyze")
        yield database


def checked(work: Work, rows: int) -> None:
    assert work.sequential.get("waiting", 0) == 0, work
    assert work.by_index.get("waiting", 0) <= rows, work
    assert work.sequential.get("set_aside", 0) + work.by_index.get("set_aside", 0) <= rows, work


def test_calls_are_bounded_while_jobs_go_and_return(backlog: Database) -> None:
    superuser: psycopg.Connection[Any] = backlog.superuser()
    checked(measure(superuser, OPERATOR, LOWER), 40_000)
    superuser.execute(f"select {LOWER}".encode())
    # Most of them are still in the lane, at its head.
    checked(measure(superuser, WORKER, CLAIM), 500)
    checked(measure(superuser, OPERATOR, SWEEP), 40_000)
    sweep = f"select {SWEEP}".encode()
    ready = b"select count(*) from trunkline.jobs where state = 'ready'"
    while superuser.execute(ready).fetchone() != (1,):
        superuser.execute(sweep)
    superuser.execute("analyze")
    work = measure(superuser, WORKER, CLAIM)
    assert work.rows_out == 1
    checked(work, 50)
    checked(measure(superuser, OPERATOR, SWEEP), 50)
    checked(measure(superuser, PRODUCER, "trunkline.enqueue('small')"), 50)
    # In a session that acts for a tenant without any of them, too.
    superuser.execute("set trunkline.tenant = 'nobody'")
    checked(measure(superuser, OPERATOR, "trunkline.health()"), 11_000)
    superuser.execute("reset trunkline.tenant")
    checked(measure(superuser, OPERATOR, RAISE), 50_000)


def test_few_jobs_that_fit_in_front_of_many_do_not_make_a_call_read_them_again(
    server: Server, template: str
) -> None:
    """Each job set aside brings another into the first thousand of its lane."""
    with databases.fresh(server, template) as database:
        superuser = database.superuser()
        superuser.execute(_SETTING.encode())
        superuser.execute(
            "select trunkline.enqueue_batch('small',"
            " (select jsonb_agg('{}'::jsonb) from generate_series(1, 999)))"
        )
        superuser.execute(_FILLING.encode(), (FEW,))
        superuser.execute("analyze")
        checked(measure(superuser, OPERATOR, LOWER), 40_000)
