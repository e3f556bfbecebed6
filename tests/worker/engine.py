"""An engine without a database: it answers the calls of one part as the test says."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from trunkline.db.call import Call
from trunkline.db.lasting import CALL_TIMEOUT, LastingConnection

__all__ = ["Clock", "Engine"]

_FUNCTION = re.compile(r"trunkline\.(\w+)\(")


class Engine:
    """Takes the place of every connection of a worker's parts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.patience: list[float] = []
        self._answers: dict[str, list[Any]] = {}
        engine = self

        async def run(
            _: LastingConnection, call: Call[Any], *, patience: float = CALL_TIMEOUT
        ) -> Any:
            return await engine.answer(call, patience)

        monkeypatch.setattr(LastingConnection, "run", run)

    def say(self, function: str, *answers: Any) -> None:
        """Give these answers in turn; the last one again and again. Errors are raised, functions
        are called with the parameters."""
        self._answers[function] = list(answers)

    async def answer(self, call: Call[Any], patience: float) -> Any:
        found = _FUNCTION.search(call.sql)
        assert found is not None
        self.calls.append((found[1], tuple(call.parameters)))
        self.patience.append(patience)
        await asyncio.sleep(0)
        waiting = self._answers.get(found[1], [None])
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(*call.parameters) if callable(answer) else answer

    def taken(self) -> list[str]:
        """The names of the functions called since this was last asked."""
        names = [name for name, _ in self.calls]
        self.calls.clear()
        return names


class Clock:
    """Monotonic time that only the test moves; a wait with a timeout moves it to its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        # Called when a wait begins, for whatever happens during it.
        self.meanwhile: Callable[[], None] | None = None
        monkeypatch.setattr(f"{module}.time", self)
        monkeypatch.setattr(f"{module}.asyncio", self)

    def monotonic(self) -> float:
        return self.now

    def timeout(self, seconds: float) -> asyncio.Timeout:
        self.waits.append(seconds)
        happens, self.meanwhile = self.meanwhile, None
        if happens is None:
            self.now += seconds
            return asyncio.timeout(0)
        happens()
        return asyncio.timeout(60)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)
