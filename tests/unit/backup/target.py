"""A database to restore into, made up: it answers queries and keeps the statements it ran."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg

from trunkline.backup.archive import Manifest

__all__ = ["Target", "a_manifest"]


class Rows(list[Any]):
    def fetchone(self) -> Any:
        return self[0] if self else None


class Told(psycopg.errors.InsufficientPrivilege):
    diag = SimpleNamespace(message_primary="permission denied")  # type: ignore[assignment]


class Target:
    """Queries are answered by the first key that they contain."""

    # What psycopg needs to compose text.
    adapters = psycopg.adapters
    connection = None

    def __init__(self, answers: dict[str, Any] | None = None, *, major: int = 16) -> None:
        self.answers = answers or {}
        self.ran: list[str] = []
        self.refused: set[str] = set()
        self.info = SimpleNamespace(server_version=major * 10000, dbname="d", user="me")

    def execute(self, query: Any, parameters: Any = None) -> Rows:
        text = query if isinstance(query, str) else query.as_string(None)
        if any(part in text for part in self.refused):
            raise Told("no")
        for part, answer in self.answers.items():
            if part in text:
                return Rows(answer(parameters) if callable(answer) else answer)
        self.ran.append(text if parameters is None else f"{text} {parameters}")
        return Rows()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield


def a_manifest(**fields: Any) -> Manifest:
    facts: dict[str, Any] = {
        "trunkline": "1",
        "created_at": "now",
        "database": "s",
        "server": 16,
        "program": 16,
        "rows": {"a.t": 3},
    }
    return Manifest(**(facts | fields))
