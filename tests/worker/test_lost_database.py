"""A handler that loses the database is handed back like one that lost a deadlock: no failure."""

import asyncio
import json
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from tests.worker import process_app
from tests.worker.scene import Scene
from trunkline import Context, SyncContext
from trunkline.cli.doctor import doctor

_HANG_UP = "select pg_terminate_backend(pg_backend_pid())"


@pytest.fixture
def notes(scene: Scene) -> Scene:
    """The scene with a table for what handlers write, and handlers that lose their connection."""
    scene.superuser.execute("create table notes (name text); grant all on notes to public")
    scene.app.tasks["loses_it"] = process_app.app.tasks["loses_it"]

    @scene.app.task(max_attempts=1)
    async def loop(ctx: Context, times: int) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values (%s)", (f"attempt {ctx.attempt}",))
            if ctx.attempt <= times:
                await connection.execute(_HANG_UP)

    @scene.app.task(max_attempts=1)
    def thread(ctx: SyncContext, times: int) -> None:
        with ctx.transaction() as connection:
            connection.execute("insert into notes values (%s)", (f"attempt {ctx.attempt}",))
            if ctx.attempt <= times:
                connection.execute(_HANG_UP)

    return scene


def written(scene: Scene) -> list[str]:
    return [row.name for row in scene.rows("select name from notes order by name")]


@pytest.mark.parametrize("kind", ["loop", "thread", "loses_it"])
async def test_a_connection_lost_in_the_transaction_is_no_failure(notes: Scene, kind: str) -> None:
    async with notes.working(concurrency=1):
        (job,) = await notes.enqueue(kind, times=2)
        found = await notes.until_state(job, "completed", "dead")
    assert (found.state, found.attempt, found.failures) == ("completed", 3, 0)
    assert written(notes) == ["attempt 3"]


async def test_what_follows_a_lost_connection_is_no_failure_either(notes: Scene) -> None:
    """The handler goes on with a connection that is closed, and wraps what it gets."""

    @notes.app.task(max_attempts=1)
    async def stubborn(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            if ctx.attempt == 1:
                with pytest.raises(psycopg.OperationalError):
                    await connection.execute(_HANG_UP)
            try:
                await connection.execute("insert into notes values ('kept')")
            except psycopg.Error as error:
                raise RuntimeError("the repository failed") from error

    async with notes.working():
        (job,) = await notes.enqueue("stubborn")
        found = await notes.until_state(job, "completed", "dead")
    assert (found.state, found.failures) == ("completed", 0)
    assert written(notes) == ["kept"]


@pytest.mark.parametrize("state", ["53100", "53200", "53300", "57P01", "57P03", "25006", "08006"])
async def test_a_server_without_means_is_no_failure(notes: Scene, state: str) -> None:
    """Disk full, no memory, too many connections, shutdown, starting, read-only, broken."""
    notes.superuser.execute(
        "create function give_up(state text) returns void language plpgsql as $$"
        " begin raise exception using errcode = state, message = 'as it would be'; end $$"
    )

    @notes.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            if ctx.attempt == 1:
                await connection.execute("select give_up(%s)", (state,))

    async with notes.working():
        (job,) = await notes.enqueue("work")
        found = await notes.until_state(job, "completed", "dead")
    assert (found.state, found.attempt, found.failures) == ("completed", 2, 0)


@pytest.mark.parametrize("state", ["57014", "23505", "42501"])
async def test_other_errors_of_the_server_are_failures(notes: Scene, state: str) -> None:
    """A statement that was cancelled, a key that exists, a right that lacks."""

    @notes.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(
                f"do $$ begin raise exception using errcode = '{state}'; end $$"
            )

    async with notes.working():
        (job,) = await notes.enqueue("work")
        found = await notes.until_state(job, "completed", "dead")
    assert (found.state, found.attempt, found.failures) == ("dead", 1, 1)


@pytest.mark.parametrize("kind", ["beside", "within"])
async def test_another_database_that_is_lost_is_a_failure(notes: Scene, kind: str) -> None:
    """It is the handler's business: only our own connections are ours to excuse."""
    dsn = notes.database.superuser_dsn

    @notes.app.task(max_attempts=1)
    async def beside() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as other:
            await other.execute(_HANG_UP)

    @notes.app.task(max_attempts=1)
    async def within(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into notes values ('undone')")
            async with await psycopg.AsyncConnection.connect(dsn) as other:
                await other.execute(_HANG_UP)

    async with notes.working():
        (job,) = await notes.enqueue(kind)
        found = await notes.until_state(job, "completed", "dead")
    assert (found.state, found.attempt, found.failures) == ("dead", 1, 1)
    assert written(notes) == []


async def test_a_job_that_always_loses_the_database_comes_to_an_end(notes: Scene) -> None:
    """Bounded as every deferral is: first at once, then ever later, dead where its task says so."""
    notes.superuser.execute("select trunkline.set_setting('max_deferrals', '3')")

    @notes.app.task(max_attempts=1, dead_when_deferred=True)
    async def hopeless(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(_HANG_UP)

    async with notes.working():
        (job,) = await notes.enqueue("hopeless")
        found = await notes.until_state(job, "completed", "dead")
    assert (found.state, found.reason) == ("dead", "deferred_too_long")
    assert (found.attempt, found.failures) == (4, 0)


def alert(scene: Scene) -> dict[str, Any]:
    """What the doctor says about jobs that are put off."""
    done = CliRunner().invoke(doctor, ["--json", "--dsn", scene.database.dsn])
    [found] = [c for c in json.loads(done.output)["checks"] if c["check"] == "deferred work"]
    return dict(found)


async def test_a_job_that_always_loses_the_database_raises_an_alert(notes: Scene) -> None:
    """Without dead_when_deferred it lives on, ever later, and the doctor tells of it."""
    bounds = {
        row.name: row.value
        for row in notes.rows(
            "select name, value from trunkline.settings where name like 'max_def%%'"
        )
    }
    assert bounds == {"max_deferrals": "20", "max_deferral_age": "24 hours"}
    notes.superuser.execute("select trunkline.set_setting('max_deferrals', '3')")

    @notes.app.task(max_attempts=1)
    async def hopeless(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(_HANG_UP)

    async with notes.working():
        (job,) = await notes.enqueue("hopeless")
        found = await notes.until_state(job, "scheduled", "dead")
    assert (found.state, found.failures) == ("scheduled", 0)
    assert found.deferrals > 3
    raised = await asyncio.to_thread(alert, notes)
    assert (raised["level"], raised["message"]) == (
        "warn",
        "1 job deferred too often or for too long",
    )
    # Within the count, but for longer than a day.
    notes.superuser.execute("select trunkline.set_setting('max_deferrals', null)")
    assert (await asyncio.to_thread(alert, notes))["level"] == "ok"
    notes.database.move_time("25 hours")
    assert (await asyncio.to_thread(alert, notes))["level"] == "warn"
