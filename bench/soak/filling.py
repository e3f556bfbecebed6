"""What a year leaves behind, put in at once: a long history, and many jobs for later.

The scheduled ones become due over a day, so that some do all the time, and run like the others:
each has its number on the slate.
"""

import psycopg

from bench import fill
from bench.internals import tables

__all__ = ["HISTORY", "fill_in"]

# The queue of the history: nobody ran those jobs.
HISTORY = "history"

_DAY = 86_400.0


def fill_in(connection: psycopg.Connection, history: int, first: int, scheduled: int) -> None:
    """Put it in, and do for the history what autovacuum would have done over that year."""
    tables.finished(connection, history, queue=HISTORY)
    fill.scheduled(connection, scheduled, queue="default", seconds=_DAY, number=first)
    tables.vacuum_finished(connection)
    connection.execute("analyze")
    fill.checkpoint(connection)
