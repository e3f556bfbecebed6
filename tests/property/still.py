"""A database whose clock stands still until it is set."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.flow.conftest import Desk
from tests.support import databases
from tests.support.internals import rows
from tests.support.servers import Server

__all__ = ["at", "begun_anew", "still_desk"]

_ZERO = "2026-01-01T00:00:00Z"


@contextmanager
def still_desk(server: Server, template: str) -> Iterator[Desk]:
    """One limit, api, and one task that takes from it."""
    with databases.fresh(server, template) as database:
        database.move_time("0")
        found = Desk(database)
        found.behind.execute(
            "create table trunkline_test.still (at timestamptz);"
            f" insert into trunkline_test.still values ('{_ZERO}');"
            " grant select on trunkline_test.still to public;"
            " create or replace function trunkline.clock() returns timestamptz language sql"
            " volatile as 'select at from trunkline_test.still'"
        )
        found.behind.execute("select trunkline.maintain_partitions()")
        found.limit("api", concurrency=None)
        found.task("api", max_attempts=100)
        yield found


def begun_anew(desk: Desk) -> None:
    """Nothing waits, runs or was ever charged, and it is the first second."""
    at(desk, 0)
    rows.clear(
        desk.behind,
        *("waiting", "set_aside", "running", "bucket_states", "adjustments", "open_buckets"),
        *("breakers", "breaker_failures"),
    )


def at(desk: Desk, second: int) -> None:
    """Set the clock."""
    desk.behind.execute(
        f"update trunkline_test.still set at = '{_ZERO}'::timestamptz"
        " + make_interval(secs => %s)".encode(),
        (second,),
    )
