"""What one call did to the tables: rows and buffers, counted in its own transaction.

Scans are not counted: reading an empty partition from end to end is the right thing to do.
"""

from dataclasses import dataclass
from typing import Any

import psycopg

from tests.support.internals import reads

__all__ = ["TABLES", "Work", "measure"]

TABLES = ("waiting", "running", "finished", "dead", "unique_keys", "bodies", "events")


@dataclass(frozen=True, slots=True)
class Work:
    """Buffers of one call, and per table the rows read by an index and without one."""

    rows_out: int
    buffers: int
    by_index: dict[str, int]
    sequential: dict[str, int]


def measure(superuser: psycopg.Connection[Any], role: str, call: str, *arguments: Any) -> Work:
    """Run the call as the role in a transaction that is rolled back; count what it touched.

    Three times, and the least counts: whoever makes roles or databases meanwhile may have every
    session of the server read the catalogue anew, which is many buffers and not the call's.
    """
    with superuser.transaction(force_rollback=True):
        superuser.execute(f"set local session authorization {role}")
        # Once unmeasured: the first call in a session also reads the catalogue.
        with superuser.transaction(force_rollback=True):
            superuser.execute(f"select * from {call}", arguments)
        superuser.execute("reset session authorization")
        found = [_measured(superuser, role, call, *arguments) for _ in range(3)]
    return min(found, key=lambda work: work.buffers)


def _measured(superuser: psycopg.Connection[Any], role: str, call: str, *arguments: Any) -> Work:
    with superuser.transaction(force_rollback=True):
        before = reads.of_transaction(superuser)
        superuser.execute(f"set local session authorization {role}")
        row = superuser.execute(
            f"explain (analyze, buffers, timing off, format json) select * from {call}", arguments
        ).fetchone()
        superuser.execute("reset session authorization")
        after = reads.of_transaction(superuser)
    assert row is not None
    plan = row[0][0]["Plan"]
    sequential, by_index = {}, {}
    for table, counts in after.items():
        was = before.get(table, (0, 0))
        if table in TABLES and counts[0] > was[0]:
            sequential[table] = counts[0] - was[0]
        by_index[table] = counts[1] - was[1]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return Work(plan["Actual Rows"], buffers, by_index, sequential)
