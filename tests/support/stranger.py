"""A login without any of our rights, which holds every advisory lock that it can guess."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

__all__ = ["KEYS", "advisory_locks", "stranger"]

# Keys that the engine, its installer and the profiles used once, or might: a class and a hash.
KEYS = (
    "(84217, 0)",
    "(84217, hashtext('executor wake-ups'))",
    *(
        f"(84217, hashtext('{duty}'))"
        for duty in (
            "maintain_partitions",
            "promote",
            "reclaim",
            "run_schedules",
            "sweep_buckets",
            "sweep_idempotency",
        )
    ),
)


@contextmanager
def stranger(superuser_dsn: str, more: Sequence[str] = ()) -> Iterator[psycopg.Connection[Any]]:
    """Open a session of such a login, which holds the advisory locks until the block ends."""
    role = sql.Identifier(f"stranger_{uuid.uuid4().hex}")
    with psycopg.connect(superuser_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} login").format(role))
        try:
            with psycopg.connect(superuser_dsn, autocommit=True) as connection:
                connection.execute(sql.SQL("set session authorization {}").format(role))
                for key in (*KEYS, *more):
                    connection.execute(f"select pg_advisory_lock{key}".encode())
                yield connection
        finally:
            admin.execute(sql.SQL("drop role {}").format(role))


def advisory_locks(observer: psycopg.Connection[Any], pid: int) -> list[str]:
    """Return the advisory locks of a session as arguments of pg_advisory_lock."""
    rows = observer.execute(
        """
        select case l.objsubid
          when 1 then format('(%%s::bigint)', l.classid::bigint << 32 | l.objid::bigint)
          else format(
            '(%%s, %%s)', l.classid::bigint::bit(32)::integer, l.objid::bigint::bit(32)::integer
          )
        end
        from pg_locks as l
        where l.locktype = 'advisory' and l.pid = %s
        """,
        (pid,),
    )
    return [key for (key,) in rows]
