"""What the tests of schedules do again and again: set one, run what is due, look at it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from tests.support.databases import Database

Row = dict[str, Any]


@dataclass(slots=True)
class Desk:
    """An operator at ten minutes past an hour, so that hours can be counted without a race."""

    database: Database
    connection: Connection[Row]
    now: datetime

    @classmethod
    def open(cls, database: Database) -> "Desk":
        connection = operator(database)
        clock = _one(connection, "select trunkline.clock() as now")["now"]
        start = clock.astimezone(UTC).replace(minute=10, second=0, microsecond=0)
        start += timedelta(hours=1)
        database.move_time(f"{(start - clock).total_seconds()} seconds")
        connection.execute("select trunkline.register_task(p_task => 'report')")
        return cls(database, connection, start)

    def hour(self, number: int) -> datetime:
        """Return the n-th full hour from the start."""
        return self.now.replace(minute=0) + timedelta(hours=number)

    def set(self, schedule: str, **changes: object) -> Row:
        """Make or change a schedule, every hour unless told otherwise."""
        arguments: dict[str, object] = {
            "p_schedule": schedule,
            "p_cron": "0 * * * *",
            "p_task": "report",
        } | changes
        named = ", ".join(f"{name} => %({name})s" for name in arguments)
        return _one(self.connection, f"select * from trunkline.set_schedule({named})", arguments)

    def call(self, function: str, *arguments: object) -> Row:
        marks = ", ".join(["%s"] * len(arguments))
        return _one(self.connection, f"select * from trunkline.{function}({marks})", arguments)

    def run(self, limit: int = 100) -> list[Row]:
        return run(self.connection, limit)

    def schedule(self, schedule: str) -> Row:
        query = "select * from trunkline.schedules where schedule = %s"
        return _one(self.connection, query, (schedule,))

    def schedules(self) -> list[str]:
        rows = self.connection.execute("select schedule from trunkline.schedules order by schedule")
        return [row["schedule"] for row in rows]

    def jobs(self) -> list[Row]:
        return self.connection.execute("select * from trunkline.jobs order by job_id").fetchall()


def operator(database: Database, *, autocommit: bool = True) -> Connection[Row]:
    connection = database.connect(role="trunkline_operator", autocommit=autocommit)
    connection.row_factory = dict_row  # type: ignore[assignment]
    return connection  # type: ignore[return-value]


def run(connection: Connection[Row], limit: int = 100) -> list[Row]:
    query = "select * from trunkline.run_schedules(p_limit => %s)"
    return connection.execute(query, (limit,)).fetchall()


def _one(connection: Connection[Row], query: Any, arguments: Any = None) -> Row:
    row = connection.execute(query, arguments).fetchone()
    assert row is not None
    return row
