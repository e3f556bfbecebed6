"""Random draws of the engine; ``Database.draw`` pins them."""

from typing import Any

import psycopg

__all__ = ["draws", "pin"]


def draws(superuser: psycopg.Connection[Any], count: int) -> list[float]:
    """Return `count` draws."""
    rows = superuser.execute(
        "select trunkline_internal.draw() from generate_series(1, %s)", (count,)
    )
    return [number for (number,) in rows]


def pin(superuser: psycopg.Connection[Any], number: float) -> None:
    """Make every draw return this number, in all sessions."""
    superuser.execute(
        "create or replace function trunkline_internal.draw() returns double precision"
        f" language sql volatile as $$ select {number!r}::double precision $$".encode()
    )
