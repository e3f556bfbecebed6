"""Inserts what a year would leave behind: a long history, and many scheduled jobs.

The scheduled jobs become due over a day, so some become due all the time and run like the others.
Each has its number on the slate.
"""

import psycopg

from bench import fill
from bench.internals import tables

__all__ = ["HISTORY", "fill_in"]

# The queue of the history, whose jobs never ran.
HISTORY = "history"

_DAY = 86_400.0


def fill_in(connection: psycopg.Connection, history: int, first: int, scheduled: int) -> None:
    """Insert both, and vacuum the history as autovacuum would have done over that year."""
    tables.finished(connection, history, queue=HISTORY)
    fill.scheduled(connection, scheduled, queue="default", seconds=_DAY, number=first)
    tables.vacuum_finished(connection)
    connection.execute("analyze")
    fill.checkpoint(connection)
