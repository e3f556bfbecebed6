"""An engine that answers the calls of a client as the test says."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from trunkline.db.pool import AsyncPool
from trunkline.model import Enqueued, EnqueuedBatch

AT = datetime(2026, 5, 1, tzinfo=UTC)
_FUNCTION = re.compile(r"trunkline\.(\w+)\(")


__all__ = ["AT", "Engine"]


class Engine:
    """Answers calls by the name of their function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.patience: list[float] = []
        self.answers: dict[str, Callable[..., Any]] = {
            "register_tasks": lambda _: None,
            "enqueue": lambda *_: Enqueued(uuid4(), True, "ready", AT),
            "enqueue_batch": lambda _, jobs: EnqueuedBatch(
                [uuid4().bytes for _ in json.loads(jobs)], "ready", AT
            ),
            "enqueue_many": lambda jobs: [
                Enqueued(uuid4(), True, "scheduled", AT) for _ in json.loads(jobs)
            ],
        }
        engine = self

        async def run(_: AsyncPool, call: Any, patience: float = 30.0) -> Any:
            found = _FUNCTION.search(call.sql)
            assert found is not None
            engine.calls.append((found[1], tuple(call.parameters)))
            engine.patience.append(patience)
            return engine.answers[found[1]](*call.parameters)

        monkeypatch.setattr(AsyncPool, "run", run)
        monkeypatch.setattr(AsyncPool, "address", property(lambda _: "h:1/d"))

    def taken(self) -> list[str]:
        names = [name for name, _ in self.calls]
        self.calls.clear()
        return names
