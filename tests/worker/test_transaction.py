"""ctx.transaction(): a handler's writes and the end of its job commit together, or not at all."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from tests.support.internals import jobs
from tests.worker.scene import DEADLINE, Scene, eventually
from trunkline import Context, Retry, SyncContext
from trunkline.errors import InvalidTask, ResultNotStorable, StaleAttempt
from trunkline.handler import JobContext


@pytest.fixture
def notes(scene: Scene) -> Scene:
    """The scene with a table for what handlers write."""
    scene.superuser.execute("create table notes (name text); grant all on notes to public")
    return scene


def written(scene: Scene) -> list[str]:
    return [row.name for row in scene.rows("select name from notes order by name")]


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_transaction_commits_writes_and_completion_together(
    notes: Scene, kind: str
) -> None:
    seen: list[str] = []

    @notes.app.task
    async def loop(ctx: Context) -> Any:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('kept')")
            seen.append(notes.state(ctx.job_id))
            ctx.result = {"noted": 1}
        seen.append(notes.state(ctx.job_id))
        return "not stored"

    @notes.app.task
    def thread(ctx: SyncContext) -> Any:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values ('kept')")
            seen.append(notes.state(ctx.job_id))
            ctx.result = {"noted": 1}
        seen.append(notes.state(ctx.job_id))
        return "not stored"

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        found = await notes.until_state(job, "completed")
        await eventually(lambda: len(seen) == 2, "the handler ended")
    assert seen == ["running", "completed"]
    assert found.result == {"noted": 1}
    assert written(notes) == ["kept"]


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_as_many_transactions_are_open_at_once_as_jobs_run(notes: Scene, kind: str) -> None:
    jobs = 6
    in_loop, in_threads = asyncio.Barrier(jobs), threading.Barrier(jobs)

    @notes.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('kept')")
            await in_loop.wait()

    @notes.app.task
    def thread(ctx: SyncContext) -> None:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values ('kept')")
            in_threads.wait(DEADLINE)

    async with notes.working(concurrency=jobs):
        for job in await notes.enqueue(kind, jobs):
            await notes.until_state(job, "completed")
    assert written(notes) == ["kept"] * jobs


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_an_error_in_the_transaction_undoes_the_writes_and_fails_the_attempt(
    notes: Scene, kind: str
) -> None:
    @notes.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('undone')")
            raise ValueError("after the write")

    @notes.app.task
    def thread(ctx: SyncContext) -> None:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values ('undone')")
            raise ValueError("after the write")

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        await eventually(lambda: notes.job(job).failures == 1, "it failed")
        assert notes.job(job).last_error["message"] == "after the write"
    assert written(notes) == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_transaction_that_is_rolled_back_on_purpose_does_not_end_the_job(
    notes: Scene, kind: str
) -> None:
    @notes.app.task
    async def loop(ctx: Context) -> str:
        with suppress(psycopg.Rollback):
            async with ctx.transaction() as connection:
                await connection.execute("insert into notes values ('undone')")
                raise psycopg.Rollback
        return "ended after it"

    @notes.app.task
    def thread(ctx: SyncContext) -> str:
        with suppress(psycopg.Rollback), ctx.transaction() as connection:
            connection.execute("insert into notes values ('undone')")
            raise psycopg.Rollback
        return "ended after it"

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        found = await notes.until_state(job, "completed")
    assert found.result == "ended after it"
    assert written(notes) == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_stale_attempt_commits_nothing(notes: Scene, kind: str) -> None:
    """CP-47: another attempt owns the job by the end of the transaction."""
    errors: list[BaseException] = []

    def lose(ctx: JobContext) -> None:
        jobs.reassign(notes.superuser, ctx.job_id)

    @notes.app.task
    async def loop(ctx: Context) -> None:
        try:
            async with ctx.transaction() as connection:
                await connection.execute("insert into notes values ('stale')")
                lose(ctx)
        except StaleAttempt as error:
            errors.append(error)
            raise

    @notes.app.task
    def thread(ctx: SyncContext) -> None:
        try:
            with ctx.transaction() as connection:
                connection.execute("insert into notes values ('stale')")
                lose(ctx)
        except StaleAttempt as error:
            errors.append(error)
            raise

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        await eventually(lambda: errors, "it was refused")
        assert notes.state(job) == "running"
    assert written(notes) == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_an_attempt_that_receives_a_cancellation_commits_nothing(
    notes: Scene, kind: str
) -> None:
    """T14, CP-50: from the heartbeat that returned cancel on, the job ends cancelled."""

    def tell(ctx: JobContext) -> None:
        notes.rows("select * from trunkline.cancel(%s, 'changed my mind')", ctx.job_id)
        beat = "select verdict from trunkline.heartbeat(%s, array[%s::uuid], array[%s])"
        assert notes.value(beat, ctx.worker, ctx.job_id, ctx.attempt) == "cancel"

    @notes.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('cancelled')")
            # The loop is not left before the block ends: nobody interrupts the handler.
            tell(ctx)

    @notes.app.task
    def thread(ctx: SyncContext) -> None:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values ('cancelled')")
            tell(ctx)

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        found = await notes.until_state(job, "cancelled", "completed", "dead")
    assert (found.state, found.reason, found.failures) == ("cancelled", "changed my mind", 0)
    assert written(notes) == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_result_that_is_no_json_undoes_the_transaction(notes: Scene, kind: str) -> None:
    @notes.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('undone')")
            ctx.result = object()

    @notes.app.task
    def thread(ctx: SyncContext) -> None:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values ('undone')")
            ctx.result = object()

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        found = await notes.until_state(job, "dead")
    assert found.last_error["code"] == ResultNotStorable.code
    assert written(notes) == []


async def test_an_error_after_the_transaction_changes_nothing(notes: Scene) -> None:
    @notes.app.task
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('kept')")
        raise ValueError("too late")

    async with notes.working():
        (job,) = await notes.enqueue("work")
        await notes.until_state(job, "completed")
        (again,) = await notes.enqueue("work")
        await notes.until_state(again, "completed")
    assert written(notes) == ["kept", "kept"]


async def test_a_cancellation_during_the_commit_waits_for_it(
    notes: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit takes long: a deferred trigger waits for a lock that the test holds."""
    notes.superuser.execute(
        "create table gate (); create function wait_at_gate() returns trigger language plpgsql as"
        " $$ begin lock table gate; return null; end $$;"
        " grant all on gate to public;"
        " create constraint trigger slow after insert on notes deferrable initially deferred"
        " for each row execute function wait_at_gate()"
    )
    keeper = notes.database.superuser(autocommit=False)
    keeper.execute("lock table gate")

    @notes.app.task
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('kept')")

    waits = (
        "select from pg_stat_activity where wait_event_type = 'Lock' and query ilike 'commit%%'"
        " and datname = current_database()"
    )
    async with notes.running(grace=0) as (worker, running):
        (job,) = await notes.enqueue("work")
        await eventually(lambda: notes.rows(waits), "the commit waits")
        worker.stop()
        await eventually(lambda: "interrupting job" in caplog.text, "it is interrupted")
        await asyncio.sleep(0)
        keeper.rollback()
        await running
        assert notes.state(job) == "completed"
    assert written(notes) == ["kept"]
    # Nothing was left to report, and nobody closed the connection under the commit.
    assert not [one for one in caplog.records if "was refused" in one.message]
    assert not [one for one in caplog.records if one.name.startswith("psycopg")]


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_transaction_that_cannot_begin_gives_its_connection_back(
    notes: Scene, kind: str
) -> None:
    """Otherwise the pool would run dry."""
    kill = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'trunkline handlers' and datname = current_database()"
    )
    attempts: list[int] = []

    @notes.app.task(max_attempts=50)
    async def loop(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt < 12:
            notes.rows(kill)
        try:
            async with ctx.transaction() as connection:
                await connection.execute("insert into notes values ('kept')")
        except Exception as error:
            raise Retry(after=0) from error

    @notes.app.task(max_attempts=50)
    def thread(ctx: SyncContext) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt < 12:
            notes.rows(kill)
        try:
            with ctx.transaction() as connection:
                connection.execute("insert into notes values ('kept')")
        except Exception as error:
            raise Retry(after=0) from error

    async with notes.working(concurrency=1):
        (job,) = await notes.enqueue(kind)
        await notes.until_state(job, "completed")
    assert written(notes) == ["kept"]


async def test_the_wrong_kind_of_with_is_explained(notes: Scene) -> None:
    errors: list[InvalidTask] = []

    @notes.app.task
    async def loop(ctx: Context) -> None:
        try:
            with ctx.transaction():  # type: ignore[attr-defined]
                pass
        except InvalidTask as error:
            errors.append(error)

    @notes.app.task
    def thread(ctx: SyncContext) -> None:
        async def wrong() -> None:
            async with ctx.transaction():  # type: ignore[attr-defined]
                pass

        try:
            asyncio.run(wrong())
        except InvalidTask as error:
            errors.append(error)

    async with notes.working():
        jobs = await notes.enqueue("loop") + await notes.enqueue("thread")
        await notes.until_ended(jobs)
    assert sorted(error.hint for error in errors) == ["Write `async with`.", "Write `with`."]


async def test_a_handler_may_enqueue_in_its_own_transaction(notes: Scene) -> None:
    @notes.app.task
    async def second() -> None:
        pass

    @notes.app.task
    async def first(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await notes.app.tasks["second"].options(connection=connection).enqueue()

    async with notes.working():
        (job,) = await notes.enqueue("first")
        await notes.until_state(job, "completed")
        ran = await eventually(
            lambda: notes.value(
                "select count(*) from trunkline.jobs where task = 'second' and state = 'completed'"
            ),
            "the second ran",
        )
    assert ran == 1


async def test_a_deadlock_is_nobodys_failure(scene: Scene) -> None:
    """Two jobs lock two rows in opposite order; both complete."""
    scene.superuser.execute(
        "create table accounts (name text primary key, balance integer default 0);"
        " insert into accounts values ('a'), ('b'); grant all on accounts to public"
    )
    met = asyncio.Barrier(2)
    first_time = {"a", "b"}

    @scene.app.task
    async def transfer(ctx: Context, here: str, there: str) -> None:
        async with ctx.transaction() as connection:
            update = "update accounts set balance = balance + 1 where name = %s"
            await connection.execute(update, (here,))
            if here in first_time:
                first_time.discard(here)
                await met.wait()
            await connection.execute(update, (there,))

    async with scene.working(concurrency=2):
        jobs = await scene.enqueue("transfer", here="a", there="b")
        jobs += await scene.enqueue("transfer", here="b", there="a")
        await scene.until_ended(jobs)
        found = [scene.job(job) for job in jobs]
    assert {job.state for job in found} == {"completed"}
    assert {job.failures for job in found} == {0}
    assert sorted(job.deferrals for job in found) == [0, 1]
    assert scene.value("select sum(balance) from accounts") == 4
