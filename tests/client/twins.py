"""The asynchronous client and its blocking twin behind one face, so that each test runs on both."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from tests.support.calls import Attempt, Calls
from tests.support.databases import Database
from trunkline import Task, Trunkline

__all__ = ["Hands", "Twin"]


class Twin:
    """Calls of either kind: `twin(twin.of(send).enqueue(to="a"))` gives what is awaited."""

    def __init__(self, app: Trunkline, *, blocking: bool) -> None:
        self.app = app
        self.blocking = blocking
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self(self.client.close())
        self._runner.close()

    def __call__(self, answer: Any) -> Any:
        return answer if self.blocking else self._runner.run(answer)

    @property
    def client(self) -> Any:
        return self.app.sync if self.blocking else self.app

    @property
    def jobs(self) -> Any:
        return self.client.jobs

    def of(self, task: Task[..., Any]) -> Any:
        return task.sync if self.blocking else task


class Hands(Calls):
    """Does by hand what a worker does with what it claims."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.superuser())

    def take(self, count: int = 1) -> Sequence[Attempt]:
        taken = self.claim("by hand", count).attempts
        assert len(taken) == count
        return taken

    def complete(self, result: Any = None) -> None:
        """Complete the next job with a result."""
        self.connection.execute(
            "select trunkline.complete(p_worker => 'by hand', p_jobs => array[%s],"
            " p_attempts => array[%s], p_results => array[%s::jsonb])",
            [*self._next(), result],
        )

    def fail(self, error: str, *, retryable: bool = False) -> None:
        """Fail the next job with an error as the worker describes it."""
        self.connection.execute(
            "select trunkline.fail(p_worker => 'by hand', p_jobs => array[%s],"
            " p_attempts => array[%s], p_errors => array[%s::jsonb], p_retryable => array[%s])",
            [*self._next(), error, retryable],
        )

    def _next(self) -> list[Any]:
        [attempt] = self.take()
        return [attempt.job, attempt.number]
