"""What a handler gets of its job, and what it may ask of its worker."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.worker.scene import Scene, eventually
from trunkline import Context, Retry
from trunkline.errors import InvalidTask, ResultNotStorable, StaleAttempt


@pytest.fixture
def notes(scene: Scene) -> Scene:
    """The scene with a table for what handlers write."""
    scene.superuser.execute("create table notes (name text); grant all on notes to public")
    return scene


def written(scene: Scene) -> list[str]:
    return [row.name for row in scene.rows("select name from notes order by name")]


async def test_the_context_tells_of_the_job(scene: Scene) -> None:
    seen: dict[str, Any] = {}

    @scene.app.task(hard_limit="1h", max_attempts=3)
    async def work(ctx: Context) -> None:
        for name in dir(ctx):
            value = getattr(ctx, name)
            if not name.startswith("_") and name not in {"log", "result"} and not callable(value):
                seen[name] = value

    async with scene.working():
        job = (
            await scene.app.tasks["work"]
            .options(queue="q", tenant="t", correlation_id="c", tags=["a", "b"])
            .enqueue()
        )
        await scene.until_state(job.id, "completed")
    deadline = seen.pop("deadline")
    assert timedelta(minutes=50) < deadline - datetime.now(UTC) < timedelta(minutes=70)
    assert seen == {
        "job_id": job.id,
        "attempt": 1,
        "task": "work",
        "queue": "q",
        "tenant": "t",
        "correlation_id": "c",
        "tags": ("a", "b"),
        "failures": 0,
        "max_attempts": 3,
        "last_error": None,
        "cancelled": False,
    }


async def test_a_later_attempt_knows_the_error_of_the_one_before(scene: Scene) -> None:
    seen: list[tuple[int, int, Any]] = []

    @scene.app.task
    async def work(ctx: Context) -> None:
        seen.append((ctx.attempt, ctx.failures, ctx.last_error))
        if ctx.attempt == 1:
            raise Retry(after=0, reason="the first time always fails")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "completed")
    assert seen[0] == (1, 0, None)
    attempt, failures, error = seen[1]
    assert (attempt, failures) == (2, 1)
    assert error["message"] == "the first time always fails"


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_progress_is_stored_and_never_goes_back(scene: Scene, kind: str) -> None:
    steps: list[Any] = []

    def look(ctx: Context) -> None:
        row = scene.job(ctx.job_id)
        steps.append((row.progress, row.message, row.phase))

    @scene.app.task
    async def loop(ctx: Context) -> None:
        await ctx.progress(40, "well", phase="one")
        look(ctx)
        await ctx.progress(10)
        look(ctx)
        await ctx.progress(message="better")
        look(ctx)

    @scene.app.task
    def thread(ctx: Context) -> None:
        ctx.progress(40, "well", phase="one")
        look(ctx)
        ctx.progress(10)
        look(ctx)
        ctx.progress(message="better")
        look(ctx)

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        await scene.until_state(job, "completed")
    assert [step[0] for step in steps] == [40, 40, 40]
    assert steps[0] == (40, "well", "one")
    assert steps[2][1] == "better"


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_progress_stops_a_handler_whose_job_is_to_be_cancelled(
    scene: Scene, kind: str
) -> None:
    """CP-50: with the reason of whoever asked."""
    passed: list[str] = []

    @scene.app.task
    async def loop(ctx: Context) -> None:
        await asyncio.to_thread(cancel, ctx)
        await ctx.progress(50)
        passed.append("loop")

    @scene.app.task
    def thread(ctx: Context) -> None:
        cancel(ctx)
        ctx.progress(50)
        passed.append("thread")

    def cancel(ctx: Context) -> None:
        scene.rows("select * from trunkline.cancel(%s, %s)", ctx.job_id, "changed my mind")

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "cancelled")
    assert found.reason == "changed my mind"
    assert passed == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_progress_stops_a_handler_whose_job_was_lost(scene: Scene, kind: str) -> None:
    """RC-32, CP-40: it discards its result and writes nothing."""
    passed: list[str] = []
    errors: list[BaseException] = []

    def lose(ctx: Context) -> None:
        scene.superuser.execute(
            "update trunkline_internal.running set worker = 'other' where job_id = %s",
            (ctx.job_id,),
        )

    @scene.app.task
    async def loop(ctx: Context) -> None:
        lose(ctx)
        try:
            await ctx.progress(50)
        except StaleAttempt as error:
            errors.append(error)
            raise
        passed.append("loop")

    @scene.app.task
    def thread(ctx: Context) -> None:
        lose(ctx)
        try:
            ctx.progress(50)
        except StaleAttempt as error:
            errors.append(error)
            raise
        passed.append("thread")

    async with scene.working() as worker:
        (job,) = await scene.enqueue(kind)
        await eventually(lambda: errors, "it was told")
        await eventually(
            lambda: (
                scene.value(
                    "select detail ->> 'running' from trunkline.workers where worker = %s",
                    worker.id,
                )
                == "0"
            ),
            "the runner is free",
        )
        assert scene.state(job) == "running"
    assert passed == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_transaction_commits_writes_and_completion_together(
    notes: Scene, kind: str
) -> None:
    seen: list[str] = []

    @notes.app.task
    async def loop(ctx: Context) -> str:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('kept')")
            seen.append(notes.state(ctx.job_id))
            ctx.result = {"noted": 1}
        seen.append(notes.state(ctx.job_id))
        return "not stored"

    @notes.app.task
    def thread(ctx: Context) -> str:
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
async def test_an_error_in_the_transaction_undoes_the_writes_and_fails_the_attempt(
    notes: Scene, kind: str
) -> None:
    @notes.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('undone')")
            raise ValueError("after the write")

    @notes.app.task
    def thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values ('undone')")
            raise ValueError("after the write")

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        await eventually(lambda: notes.job(job).failures == 1, "it failed")
        assert notes.job(job).last_error["message"] == "after the write"
    assert written(notes) == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_stale_attempt_commits_nothing(notes: Scene, kind: str) -> None:
    """CP-47: another attempt owns the job by the end of the transaction."""
    errors: list[BaseException] = []

    def lose(ctx: Context) -> None:
        notes.superuser.execute(
            "update trunkline_internal.running set worker = 'other' where job_id = %s",
            (ctx.job_id,),
        )

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
    def thread(ctx: Context) -> None:
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
async def test_a_result_that_is_no_json_undoes_the_transaction(notes: Scene, kind: str) -> None:
    @notes.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('undone')")
            ctx.result = object()

    @notes.app.task
    def thread(ctx: Context) -> None:
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
    def thread(ctx: Context) -> None:
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
            with ctx.transaction():
                pass
        except InvalidTask as error:
            errors.append(error)

    @notes.app.task
    def thread(ctx: Context) -> None:
        async def wrong() -> None:
            async with ctx.transaction():
                pass

        try:
            asyncio.run(wrong())
        except InvalidTask as error:
            errors.append(error)

    async with notes.working():
        jobs = await notes.enqueue("loop") + await notes.enqueue("thread")
        await notes.until_ended(jobs)
    assert sorted(error.hint for error in errors) == ["Write `async with`.", "Write `with`."]


async def test_snooze_puts_the_job_off_without_a_failure(scene: Scene) -> None:
    """CP-63: what a worker does when it must wait."""
    started = threading.Event()

    @scene.app.task
    async def work(ctx: Context) -> None:
        started.set()
        ctx.snooze("10m", "the provider is busy")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "scheduled")
    assert started.is_set()
    assert (found.failures, found.deferrals) == (0, 1)
    assert timedelta(minutes=9) < found.run_at - datetime.now(UTC) < timedelta(minutes=11)


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
        await eventually(
            lambda: notes.value(
                "select count(*) from trunkline_internal.finished where task = 'second'"
            ),
            "the second ran",
        )
