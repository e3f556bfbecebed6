"""A result that does not match its annotated type fails the attempt, for good."""

from typing import Any

import pytest

from tests.worker import process_app
from tests.worker.scene import Scene, eventually
from trunkline import Context, SyncContext

# For the type checker; the handlers below really return text.
THREE: Any = "three"


@pytest.fixture
def notes(scene: Scene) -> Scene:
    """The scene with a table for what handlers write."""
    scene.superuser.execute("create table notes (name text); grant all on notes to public")
    return scene


def declare(scene: Scene, kind: str) -> None:
    """A task `miscounted` that is to return a number and returns text."""
    if kind == "process":
        scene.app.tasks["miscounted"] = process_app.app.tasks["miscounted"]
        return

    async def loop(ctx: Context, in_transaction: bool = False) -> int:
        if in_transaction:
            async with ctx.transaction() as connection:
                await connection.execute("insert into notes values ('undone')")
                ctx.result = THREE
        return THREE  # type: ignore[no-any-return]

    def thread(ctx: SyncContext, in_transaction: bool = False) -> int:
        if in_transaction:
            with ctx.transaction() as connection:
                connection.execute("insert into notes values ('undone')")
                ctx.result = THREE
        return THREE  # type: ignore[no-any-return]

    scene.app.task(name="miscounted")(loop if kind == "loop" else thread)


@pytest.mark.parametrize("in_transaction", [False, True], ids=["returned", "in a transaction"])
@pytest.mark.parametrize("kind", ["loop", "thread", "process"])
async def test_a_wrong_result_is_dead_with_its_value_and_without_its_writes(
    notes: Scene, kind: str, in_transaction: bool
) -> None:
    declare(notes, kind)
    request = notes.app.tasks["miscounted"].request(in_transaction=in_transaction)
    async with notes.working():
        (handle,) = await notes.app.enqueue_many([request])
        job = await notes.until_state(handle.id, "completed", "dead")
    assert (job.state, job.reason, job.attempt) == ("dead", "not_retryable", 1)
    assert job.result is None
    error = job.last_error
    assert (error["type"], error["code"], error["value"]) == (
        "WrongResult",
        "wrong_result",
        '"three"',
    )
    assert "miscounted" in error["message"]
    assert "int" in error["message"]
    assert notes.value("select count(*) from notes") == 0


async def test_a_long_value_is_kept_in_parts(scene: Scene) -> None:
    @scene.app.task
    async def work() -> list[int]:
        wrong: Any = ["é" * 100_000]
        return wrong  # type: ignore[no-any-return]

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "dead")
    assert found.last_error["value"].startswith('["éé')
    assert len(found.last_error["value"]) == 256
    (event,) = scene.rows(
        "select detail -> 'error' as error from trunkline.events where job_id = %s and kind = %s",
        job,
        "failed",
    )
    assert event.error["code"] == "wrong_result"
    assert len(event.error["value"]) >= 2000


async def test_a_return_value_after_the_transaction_is_not_checked(scene: Scene) -> None:
    """The job has ended with its writes; what the handler returns afterwards is not stored."""
    returned = []

    @scene.app.task
    async def work(ctx: Context) -> int:
        async with ctx.transaction():
            ctx.result = 3
        returned.append(True)
        return THREE  # type: ignore[no-any-return]

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await eventually(lambda: returned, "the handler ended")
        found = await scene.until_state(job, "completed", "dead")
    assert (found.state, found.result) == ("completed", 3)
