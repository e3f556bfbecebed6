"""A database whose guard refuses illegal changes, with a connection for each role."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt, Calls
from tests.support.databases import Database


class Desk:
    """The connections of a producer, a worker, an operator and a superuser (`behind`)."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.producer = Calls(database.connect("trunkline_producer"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.operator = Calls(database.connect("trunkline_operator"))
        self.behind = database.superuser()

    def limit(self, name: str, **parts: Any) -> Self:
        self.set_limit(name, parts)
        return self

    def set_limit(self, name: str, parts: Mapping[str, Any], status: str | None = None) -> bool:
        is_new: bool = self.operator.value(
            "select trunkline.set_limit(%s, %s, %s)", name, Jsonb(dict(parts)), status
        )
        return is_new

    def task(self, *limits: str, task: str = "work", **policy: Any) -> Self:
        self.producer.register(task, limits=list(limits), **policy)
        return self

    def enqueue(self, count: int = 1, **fields: Any) -> list[UUID]:
        return self.producer.fill(count, **fields)

    def claim(self, limit: int = 100, worker: str = "w") -> list[Attempt]:
        return self.worker.claim(worker, limit).attempts

    def claimed(self, limit: int = 100) -> list[UUID]:
        return [attempt.job for attempt in self.claim(limit)]

    def end(self, attempts: Sequence[Attempt], how: str = "complete", **more: Any) -> None:
        verdicts = self.worker.batch(how, attempts[0].worker, attempts, **more)
        assert {verdict.verdict for verdict in verdicts} == {"ok"}

    @staticmethod
    def detail(refused: psycopg.Error) -> dict[str, Any]:
        """Return the detail of a refusal."""
        assert refused.diag.message_detail is not None
        detail: dict[str, Any] = json.loads(refused.diag.message_detail)
        return detail

    def bucket(self, name: str) -> dict[str, Any]:
        cursor = self.operator.connection.execute(
            "select * from trunkline.buckets where name = %s", (name,)
        )
        row = cursor.fetchone()
        assert row is not None
        assert cursor.description is not None
        return dict(zip([column.name for column in cursor.description], row, strict=True))


@pytest.fixture
def desk(guard: Database) -> Desk:
    return Desk(guard)
