"""What a role, a database or a server sets for its sessions does not stop the work."""

import asyncio
import json

import pytest
from click.testing import CliRunner
from psycopg import sql

from tests.worker.scene import Scene
from trunkline import Context, SyncContext
from trunkline.cli.doctor import doctor

SETTINGS = [
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_read_only", "on"),
    ("row_security", "off"),
    ("client_encoding", "sql_ascii"),
    ("idle_session_timeout", "100ms"),
]


def set_for_database(scene: Scene, name: str, value: str) -> None:
    database = scene.value("select current_database()")
    scene.superuser.execute(
        sql.SQL("alter database {} set {} = {}").format(
            sql.Identifier(database), sql.Identifier(name), sql.Literal(value)
        )
    )


@pytest.mark.parametrize(("name", "value"), SETTINGS)
async def test_work_is_done_whatever_the_database_sets(scene: Scene, name: str, value: str) -> None:
    @scene.app.task(max_attempts=1)
    async def loop(ctx: Context, name: str) -> str:
        await ctx.progress(50)
        async with ctx.transaction():
            ctx.result = name
        return name

    @scene.app.task(max_attempts=1)
    def thread(ctx: SyncContext, name: str) -> str:
        ctx.progress(50)
        with ctx.transaction():
            ctx.result = name
        return name

    set_for_database(scene, name, value)
    async with scene.working():
        for task in ("loop", "thread"):
            (job,) = await scene.enqueue(task, name="Ä")
            found = await scene.until_state(job, "completed", "dead")
            assert (found.state, found.result) == ("completed", "Ä")


@pytest.mark.parametrize(
    ("name", "value"), [*SETTINGS[:4], ("statement_timeout", "50"), ("lock_timeout", "50")]
)
async def test_the_doctor_names_the_setting_where_it_is_set_and_the_remedy(
    scene: Scene, name: str, value: str
) -> None:
    set_for_database(scene, name, value)
    done = await asyncio.to_thread(
        CliRunner().invoke, doctor, ["--json", "--dsn", scene.database.dsn]
    )
    found = [one for one in json.loads(done.output)["checks"] if one["check"] == "settings"]
    [finding] = found
    database = scene.value("select current_database()")
    assert f"{name} is {value}" in finding["message"]
    assert f"database {database}" in finding["message"]
    assert finding["hint"] == f'Run: alter database "{database}" reset {name};'


async def test_a_role_wins_over_its_database(scene: Scene) -> None:
    """The command that would help is named, not the one for a value that is not in force."""
    role = "trunkline_installer"
    database = scene.value("select current_database()")
    set_for_database(scene, "default_transaction_read_only", "off")
    scene.superuser.execute(
        f'alter role {role} in database "{database}" set default_transaction_read_only = on'
    )
    done = await asyncio.to_thread(
        CliRunner().invoke, doctor, ["--json", "--dsn", scene.database.dsn]
    )
    [finding] = [one for one in json.loads(done.output)["checks"] if one["check"] == "settings"]
    expected = f'alter role "{role}" in database "{database}" reset default_transaction_read_only;'
    assert expected in finding["hint"]
