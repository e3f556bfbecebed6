"""Thousands of expired jobs beside live ones: a claim ends and reads a bounded number of them."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.plans.measuring import Work, measure
from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import Server
from tests.support.waiting import until

WORKER, OPERATOR = "trunkline_worker", "trunkline_operator"
EXPIRED = 10_000
# An update counts the row that it finds, and so does a delete.
ENDED = 100 * 6

_SETTING = """
select
  trunkline.set_limit('api', '{"concurrency": 1}'),
  trunkline.register_task('plain'),
  trunkline.register_task('limited', p_limits => '{api}')
"""
_FILLING = """
select count(*) from trunkline.enqueue_many((
  select jsonb_agg(jsonb_build_object(
    'task', %s::text, 'queue', %s::text, 'expires_at', trunkline.clock() + interval '1 minute'
  ))
  from generate_series(1, %s)
))
"""


@pytest.fixture(params=["analysed", "never analysed"])
def late(server: Server, template: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Expired jobs in another queue and behind a limit, and live ones; tests roll back."""
    with databases.fresh(server, template) as database:
        superuser = database.superuser()
        superuser.execute(_SETTING.encode())
        superuser.execute(_FILLING.encode(), ("plain", "late", EXPIRED))
        superuser.execute(_FILLING.encode(), ("limited", "default", EXPIRED))
        superuser.execute(
            "select trunkline.enqueue_batch('plain', (select jsonb_agg('{}'::jsonb)"
            " from generate_series(1, 1000)))"
        )
        superuser.execute("select trunkline.enqueue('limited', p_priority => 1)")
        superuser.execute("select from trunkline.claim('other', p_tasks => '{limited}')")
        database.move_time("2 minutes")
        if request.param == "analysed":
            superuser.execute("analyze")
        yield database


def _bounded(work: Work, rows: int) -> None:
    assert work.sequential.get("waiting", 0) == 0, work
    assert work.by_index.get("waiting", 0) <= rows, work


@pytest.mark.parametrize("position", [None, "{}"], ids=["full scan", "position"])
def test_a_claim_among_expired_jobs_reads_only_what_it_takes_and_ends(
    late: Database, position: str | None
) -> None:
    superuser: psycopg.Connection[Any] = late.superuser()
    claim = "trunkline.claim('w', array['default'], 10, null, %s)"
    work = measure(superuser, WORKER, claim, position)
    assert work.rows_out == 10
    _bounded(work, ENDED + 200)


def test_a_claim_ends_a_hundred_and_the_duty_the_rest(late: Database) -> None:
    superuser: psycopg.Connection[Any] = late.superuser()
    ended = b"select count(*) from trunkline.jobs where reason = 'expired'"
    superuser.execute("select from trunkline.claim('w', array['default'], 10)")
    assert superuser.execute(ended).fetchone() == (100,)
    duty = "trunkline.run_duty('expire')"
    _bounded(measure(superuser, OPERATOR, duty), EXPIRED * 6)
    while superuser.execute(ended).fetchone() != (2 * EXPIRED,):
        superuser.execute(f"select {duty}".encode())
    # With none left, a claim and the duty pay for a probe of the index.
    superuser.execute("analyze")
    _bounded(measure(superuser, WORKER, "trunkline.claim('w', array['default'], 10)"), 60)
    _bounded(measure(superuser, OPERATOR, duty), 5)


def test_a_claim_that_keeps_its_position_passes_over_expired_jobs_once(late: Database) -> None:
    superuser: psycopg.Connection[Any] = late.superuser()
    superuser.execute("select trunkline.enqueue('plain', p_queue => 'late')")
    superuser.execute("select trunkline.enqueue('plain', p_queue => 'late')")
    position = "{}"

    def passed_over() -> bool:
        """Claim again; other sessions may keep the position back for a while."""
        nonlocal position
        rows = superuser.execute(
            "select position::text from trunkline.claim('w', array['late'], 1, null, %s::jsonb)"
            " where position is not null",
            (position,),
        ).fetchall()
        position = rows[-1][0]
        claim = "trunkline.claim('w', array['late'], 1, null, %s)"
        return measure(superuser, WORKER, claim, position).by_index.get("waiting", 0) <= ENDED

    until(passed_over, "the position is behind the expired jobs")
