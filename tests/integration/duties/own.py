"""A user's own duties: functions in schema app, added by the installer."""

import json
from typing import Any

import psycopg
import pytest

from tests.support.calls import Calls
from tests.support.databases import Database

__all__ = ["App"]

_SCHEMA = """
create schema app;
grant usage on schema app to trunkline_owner;
create sequence app.runs;
grant usage on sequence app.runs to trunkline_owner;
create function app.count_runs() returns void language sql as $$ select nextval('app.runs') $$;
create function app.wait() returns void language sql as $$ select pg_sleep(600) $$;
create function app.break() returns integer language plpgsql as $$
begin
  perform nextval('app.runs');
  raise exception 'the disk is full';
end
$$;
"""


class App:
    """An application whose functions may become duties."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.installer = database.connect()
        self.installer.execute(_SCHEMA)
        self.operator = Calls(database.connect("trunkline_operator"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.worker.connection.execute("set client_min_messages = error")

    def add(self, duty: str, function: str, every: str = "1 hour") -> None:
        self.installer.execute(
            "select trunkline.add_duty(%s, %s, %s::interval)", (duty, function, every)
        )

    def refused(self, duty: str, function: str | None, every: str | None = "1 hour") -> Any:
        """Return the detail of the refusal."""
        with pytest.raises(psycopg.Error) as caught:
            self.installer.execute(
                "select trunkline.add_duty(%s, %s, %s::interval)", (duty, function, every)
            )
        assert caught.value.sqlstate == "TL028"
        assert caught.value.diag.message_detail is not None
        return json.loads(caught.value.diag.message_detail)

    def runs(self) -> int:
        """How often functions that count their runs were called."""
        row = self.installer.execute("select is_called, last_value from app.runs").fetchone()
        assert row is not None
        called, last = row
        return int(last) if called else 0

    def run_all(self) -> dict[str, tuple[bool, int | None, str | None]]:
        """Run what is due, as a worker does."""
        rows = self.worker.connection.execute(
            "select duty, ran, rows, error from trunkline.run_duties()"
        ).fetchall()
        return {duty: (ran, done, error) for duty, ran, done, error in rows}

    def health(self, duty: str) -> tuple[bool, dict[str, Any]]:
        row = self.operator.connection.execute(
            'select ok, detail from trunkline.health() where "check" = %s', (f"duty {duty}",)
        ).fetchone()
        assert row is not None
        return row[0], row[1]
