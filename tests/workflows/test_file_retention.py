"""How long files of workflows are kept: as long as they are needed, then for their retention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import Attempt
from tests.workflows.flow import Flow, job
from trunkline.artifacts.results import reference_to
from trunkline.db.call import Call
from trunkline.db.calls import artifacts as calls
from trunkline.db.connect import connect
from trunkline.db.runner import run
from trunkline.model import Artifact


class Keeper:
    """A workflow engine with files."""

    def __init__(self, flow: Flow, connection: Any) -> None:
        self.flow = flow
        self._connection = connection

    def call(self, call: Call[Any]) -> Any:
        return run(self._connection, call)

    def add(self, attempt: Attempt, name: str, kind: str) -> UUID:
        """Stage a file for an attempt."""
        place = ("w", attempt.job, attempt.number)
        begun = self.call(
            calls.begin_artifact(
                *place, name, kind=kind, content_type="text/plain", size=5, step=None
            )
        )
        staged: UUID = self.call(
            calls.stage_artifact(*place, begun.path, size=5, sha256="0" * 64, duration=None)
        )
        return staged

    def complete(self, attempt: Attempt) -> None:
        """Complete a job with a result in the store and a document."""
        self.add(attempt, "page.pdf", "pdf")
        result = self.add(attempt, "result.json", "result")
        self.flow.complete(attempt, results=[reference_to(result)])

    def days_pass(self, days: int) -> None:
        """Let days pass for workers that run the duties."""
        for _ in range(days):
            self.flow.database.move_time("1 day")
            self.flow.worker.value("select count(*) from trunkline.run_duties()")

    def files(self, *, deleted: bool = False) -> list[str]:
        found: list[Artifact] = self.call(
            calls.list_artifacts(
                job=None,
                workflow=None,
                kind=None,
                name=None,
                deleted=deleted,
                limit=100,
                after=None,
            )
        )
        return [artifact.name for artifact in found]

    def removals(self) -> int:
        return len(self.call(calls.file_removals(100)))


@pytest.fixture
def keeper(flow: Flow) -> Iterator[Keeper]:
    with connect(flow.database.superuser_dsn) as connection:
        flow.operator.value("select trunkline.set_setting('finished_retention', '7 days')")
        yield Keeper(flow, connection)


def _path(flow: Flow, attempt: Attempt, step: str) -> str | None:
    path: str | None = flow.worker.value(
        "select path from trunkline.dependency_results('w', %s, %s, %s)",
        attempt.job,
        attempt.number,
        step,
    )
    return path


def test_a_live_workflow_keeps_its_files_and_their_retention_starts_at_its_end(
    keeper: Keeper,
) -> None:
    flow = keeper.flow
    flow.start([job("a"), job("b", "a")])
    keeper.complete(flow.take(1)["a"])
    keeper.days_pass(45)
    assert keeper.files() == ["page.pdf", "result.json"]
    b = flow.take(1)["b"]
    assert _path(flow, b, "a") is not None
    flow.complete(b)
    keeper.days_pass(6)
    assert keeper.files() == ["page.pdf", "result.json"]
    keeper.days_pass(3)
    assert keeper.files() == ["page.pdf"]
    keeper.days_pass(20)
    assert keeper.files() == ["page.pdf"]
    keeper.days_pass(3)
    assert keeper.files() == []
    assert keeper.files(deleted=True) == ["page.pdf", "result.json"]
    assert keeper.removals() == 2
    keeper.days_pass(31)
    assert keeper.files(deleted=True) == []


def test_the_retention_of_files_may_be_longer_than_that_of_the_workflow(keeper: Keeper) -> None:
    flow = keeper.flow
    keeper.call(calls.set_artifact_retention("pdf", 50 * 86400))
    started = flow.start([job("a"), job("b", "a")])
    keeper.complete(flow.take(1)["a"])
    keeper.days_pass(20)
    flow.complete(flow.take(1)["b"])
    keeper.days_pass(45)
    assert flow.workflow(started.workflow_id) is None
    assert keeper.files() == ["page.pdf"]
    keeper.days_pass(7)
    assert keeper.files() == []


def test_an_unacknowledged_dead_job_keeps_the_files_of_its_workflow(keeper: Keeper) -> None:
    flow = keeper.flow
    started = flow.start([job("a"), job("b", "a")])
    keeper.complete(flow.take(1)["a"])
    flow.fail(flow.take(1)["b"])
    keeper.days_pass(40)
    assert keeper.files() == ["page.pdf", "result.json"]
    flow.retry(started.workflow_id)
    b = flow.take(1)["b"]
    assert _path(flow, b, "a") is not None
    flow.fail(b)
    keeper.days_pass(40)
    assert keeper.files() == ["page.pdf", "result.json"]
    flow.operator.change("acknowledge", flow.id_of(started.workflow_id, "b"))
    keeper.days_pass(2)
    assert keeper.files() == []


def test_a_rerun_keeps_the_files_that_it_uses(keeper: Keeper) -> None:
    flow = keeper.flow
    first = flow.start([job("a"), job("b", "a")])
    keeper.complete(flow.take(1)["a"])
    flow.complete(flow.take(1)["b"])
    flow.operator.value("select trunkline.rerun_workflow(%s, 'b')", first.workflow_id)
    keeper.days_pass(40)
    b = flow.take(1)["b"]
    assert _path(flow, b, "a") is not None
    flow.complete(b)
    keeper.days_pass(33)
    assert keeper.files() == []


def test_the_large_result_of_a_plain_job_goes_with_the_job(keeper: Keeper) -> None:
    """Also if the retention of jobs is raised after its end."""
    flow = keeper.flow
    flow.producer.enqueue("work")
    [attempt] = flow.claim(1).attempts
    keeper.complete(attempt)
    flow.operator.value("select trunkline.set_setting('finished_retention', '12 days')")
    keeper.days_pass(11)
    assert flow.operator.value("select count(*) from trunkline.jobs") == 1
    assert keeper.files() == ["page.pdf", "result.json"]
    keeper.days_pass(3)
    assert flow.operator.value("select count(*) from trunkline.jobs") == 0
    assert keeper.files() == ["page.pdf"]
    assert keeper.files(deleted=True) == ["page.pdf", "result.json"]
    assert keeper.removals() == 1


def test_files_of_a_deleted_workflow_leave_tombstones(keeper: Keeper) -> None:
    flow = keeper.flow
    started = flow.start([job("a"), job("b")], tenant="acme")
    keeper.complete(flow.take(1)["a"])
    keeper.add(flow.take(1)["b"], "unpublished.txt", "txt")
    flow.cancel(started.workflow_id)
    flow.database.move_time("1 hour")
    flow.worker.value("select count(*) from trunkline.run_duties()")
    keeper.flow.operator.value("select trunkline.delete_workflow(%s)", started.workflow_id)
    assert keeper.files() == []
    assert keeper.files(deleted=True) == ["page.pdf", "result.json"]
    assert keeper.removals() == 3
    used = flow.admin.value("select used_bytes from trunkline.storage where tenant = 'acme'")
    assert used == 0
    keeper.days_pass(29)
    assert keeper.files(deleted=True) == ["page.pdf", "result.json"]
    keeper.days_pass(2)
    assert keeper.files(deleted=True) == []
