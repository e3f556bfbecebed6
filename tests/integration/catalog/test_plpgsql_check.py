"""Branches that rarely run are checked without running them."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.databases import Database
from tests.support.servers import Server

FINDINGS = """
select c.functionid::regprocedure::text, c.lineno, c.level, c.message, c.detail, c.hint, c.query
from pg_proc as p
join pg_language as l on l.oid = p.prolang and l.lanname = 'plpgsql'
cross join lateral plpgsql_check_function_tb(
  p.oid, fatal_errors => false, other_warnings => true, extra_warnings => true,
  performance_warnings => true, security_warnings => true
) as c
where p.pronamespace in ('trunkline'::regnamespace, 'trunkline_internal'::regnamespace)
  and p.prorettype <> 'trigger'::regtype
order by 1, 2
"""

# The check sees no writes in these and would have them STABLE or IMMUTABLE. Why they are not:
VOLATILITY_ON_PURPOSE = {
    "call_duty": "it calls the function of a duty, which writes and which the checker cannot see",
    "claim_scan": "it locks rows, which only a volatile function may",
    "event_for": "each look needs a snapshot of its own: the event may be committed meanwhile",
    "keep_events": "it calls a function of a profile that writes, which the checker cannot see",
    "keeps_steps": "each look needs a snapshot of its own, since a call moves the job meanwhile",
    "live_state": "each look needs a snapshot of its own, since a claim moves the job between them",
    "lock_running": "it locks rows, which only a volatile function may",
    "lock_heads": "it locks rows, which only a volatile function may",
    "select_fairly": "it locks rows, which only a volatile function may",
    "next_position": "whether the transaction has an id changes within a claim",
    "has_lost_parent": "looks again after a look that found nothing, as live_state",
    "quiet_steps": "its second look is a proof only with a newer snapshot than the first",
    "visible_end": "looks after another look that found nothing, so it needs a newer snapshot",
    "visible_live_state": "each look needs a snapshot of its own, as live_state",
}


def checker(database: Database) -> psycopg.Connection:
    connection = database.superuser()
    connection.execute("create extension plpgsql_check")
    return connection


@pytest.fixture(autouse=True)
def _has_the_extension(server: Server) -> None:
    if server.major != 15:
        pytest.skip("the embedded build has no plpgsql_check; Debian's PostgreSQL 15 has it")


def test_no_function_has_a_finding(database: Database) -> None:
    found = checker(database).execute(FINDINGS.encode()).fetchall()
    marked = [row for row in found if row[3].startswith("routine is marked as")]
    names = {row[0].partition("(")[0].removeprefix("trunkline_internal.") for row in marked}
    # Equal, so that a reason that no longer applies is taken out.
    assert names == set(VOLATILITY_ON_PURPOSE)
    assert [row for row in found if row not in marked] == []


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("declare v_x integer; begin end", "unused variable"),
        ("begin perform t.nothing from trunkline_internal.tasks as t; end", "does not exist"),
        ("begin raise '%'; end", "too few parameters"),
        ("declare v_x text := 1; begin v_x := v_x; end", "different type"),
        (
            "declare v_x text; begin execute 'select ' || v_x; end",
            "text type variable is not sanitized",
        ),
    ],
)
def test_a_flaw_is_found(database: Database, body: str, finding: str) -> None:
    connection = checker(database)
    connection.execute("set check_function_bodies = off")
    connection.execute(
        f"create function trunkline_internal.flawed() returns void language plpgsql as $${body}$$"
    )
    found = connection.execute(FINDINGS.encode()).fetchall()
    assert any(finding in row[3] for row in found)
