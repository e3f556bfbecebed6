"""One transaction in a database that has a profile, for the questions that the profile ships."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from trunkline.db.translate import translated
from trunkline.errors import SQLSTATES, ProfileNotInstalled, SchemaMissing
from trunkline.profiles.profile import Profile, render, schema_name, statement
from trunkline.schema.session import Connection, connect, is_installed

__all__ = ["SQL", "Session", "is_recorded", "session"]

# Statements of the installer, for any profile.
SQL = files(__package__) / "sql"


@dataclass(frozen=True, slots=True)
class Session:
    """A transaction in the schema of a profile."""

    # One of psycopg. Its transaction commits when the block of `session` ends.
    connection: Connection
    profile: Profile
    # The schema that the profile is installed in.
    schema: str

    def ask(self, question: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run the file ``ask/<question>.sql`` of the profile and return its rows."""
        return self.connection.execute(self.sql(question).encode(), parameters or None).fetchall()

    def sql(self, question: str) -> str:
        """Return the text of a question for this schema."""
        text = self.profile.text("ask", f"{question}.sql")
        return render(text, self.profile.schema, self.schema)


@contextmanager
def session(dsn: str, profile: Profile, *, schema: str | None = None) -> Iterator[Session]:
    """Open a transaction in a database that has the profile.

    Refusals of the profile's functions become the exceptions that it registered, and other errors
    of the database those of `trunkline.errors`.
    """
    target = schema_name(schema or profile.schema)
    with connect(dsn) as connection, translated(SQLSTATES | profile.sqlstates):
        if not is_installed(connection):
            raise SchemaMissing("This database has no Trunkline schema")
        if not is_recorded(connection, target):
            raise ProfileNotInstalled(
                f"Profile {profile.name} is not installed in schema {target}",
                hint=f"Install it with: trunkline profile install {profile.name}",
            )
        yield Session(connection, profile, target)


def is_recorded(connection: Connection, schema: str) -> bool:
    """Whether a schema has the record of an installed profile."""
    row = connection.execute(statement(SQL, "is_there", schema).encode()).fetchone()
    return row is not None and bool(row[0])
