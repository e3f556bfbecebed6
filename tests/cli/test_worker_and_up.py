"""``trunkline worker`` and ``trunkline up`` as processes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.cli.driving import PROGRAM, Cli, clean_environment, process
from tests.support import newer
from tests.support.databases import Database
from tests.support.servers import Server
from tests.support.waiting import until
from trunkline.cli import worker
from trunkline.embedded import service
from trunkline.schema import CONTRACT
from trunkline.worker.entry import WorkerOptions

APPLICATION = """
from trunkline import Trunkline

app = Trunkline()

@app.task
async def double(number: int) -> int:
    return 2 * number
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APPLICATION)
    return tmp_path


@contextmanager
def running(
    *arguments: str, folder: Path, environment: dict[str, str], launcher: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [*launcher, *PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


def stop(started: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
    """Ask it to end; return what it printed."""
    started.send_signal(number)
    out, _ = started.communicate(timeout=300)
    assert started.returncode == 0, out
    return out


def test_a_worker_runs_jobs_until_it_is_asked_to_stop(database: Database, folder: Path) -> None:
    cli = Cli(database.dsn)
    environment = clean_environment(database.dsn)
    with running(
        "worker", "shop:app", "--name", "me", folder=folder, environment=environment
    ) as it:
        until(lambda: cli.json("workers", "list"), "the worker is there")
        (row,) = cli.json("workers", "list")
        assert row["worker"].startswith("me-")
        done = cli.json("jobs", "enqueue", "double", "-a", "number=21", "--wait", "--timeout", "3m")
        assert (done["state"], done["result"]) == ("completed", 42)
        stop(it)
    assert cli.json("workers", "list") == []


@pytest.mark.parametrize("command", ["worker", "supervisor", "up"])
def test_what_runs_in_the_background_ignores_ctrl_c(
    database: Database, folder: Path, command: str
) -> None:
    """A shell without job control lets its background jobs ignore SIGINT, and so do we."""
    cli = Cli(database.dsn)
    arguments = {
        "worker": ("worker", "shop:app"),
        "supervisor": ("worker", "shop:app", "--processes", "2"),
        "up": ("up", "--no-api"),
    }[command]
    background = ("/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh")
    environment = clean_environment(database.dsn)
    with running(*arguments, folder=folder, environment=environment, launcher=background) as it:
        # Before and after: what has worked already would have heard of the signal.
        for number in (1, 2):
            if command == "up":
                database.move_time("1 hour")
                until(lambda: duties_are_done(cli), "the duties are done")
            else:
                until(lambda: cli.json("workers", "list"), "the worker is there")
                job = ("jobs", "enqueue", "double", "-a", f"number={number}")
                done = cli.json(*job, "--wait", "--timeout", "3m")
                assert done["result"] == 2 * number
            if number == 1:
                it.send_signal(signal.SIGINT)
        assert it.poll() is None
        assert "SIGINT" not in stop(it)


def duties_are_done(cli: Cli) -> bool:
    return not any(row["late"] for row in cli.json("duties", "list"))


def test_every_option_reaches_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[WorkerOptions] = []

    def pretend(given: WorkerOptions) -> int:
        seen.append(given)
        return 7

    monkeypatch.setattr(worker, "run_worker", pretend)
    run = Cli("postgresql:///unused").run
    assert run("worker", "a:b").exit_code == 7
    assert seen.pop() == WorkerOptions(app_path="a:b")
    run(
        *("worker", "a:b", "--queues", "x, y", "--queues", "z,x", "--tasks", "t"),
        *("--concurrency", 3, "--processes", 2, "--threads", 4, "--memory-limit", "512MB"),
        *("--grace", "1m30s", "--log", "json", "--log-level", "debug", "--name", "n"),
        *("--dsn", "postgresql:///d", "--listen-dsn", "postgresql:///l"),
    )
    assert seen == [
        WorkerOptions(
            app_path="a:b",
            queues=("x", "y", "z"),
            tasks=("t",),
            concurrency=3,
            processes=2,
            threads=4,
            memory_limit=512_000_000,
            grace=90.0,
            dsn="postgresql:///d",
            listen_dsn="postgresql:///l",
            log_format="json",
            log_level="debug",
            name="n",
        )
    ]


@pytest.mark.parametrize("wrong", ["lots", "0", "-1MB", "5 parsecs", "1XB"])
def test_sizes_are_checked(wrong: str) -> None:
    result = Cli("").run("worker", "a:b", f"--memory-limit={wrong}")
    assert result.exit_code == 2
    assert "512MB" in result.stderr


def test_the_options_are_those_of_the_worker() -> None:
    fields = set(WorkerOptions.__dataclass_fields__) - {"app_path"}
    named = {
        parameter.name
        for parameter in worker.worker.params
        if parameter.name not in {"app", "help"}
    }
    assert named == fields


@pytest.fixture
def empty(server: Server) -> Iterator[str]:
    name = f"test_up_{server.major}"
    with psycopg.connect(server.installer_dsn, autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)".encode())
        admin.execute(f"create database {name}".encode())
        yield server.dsn(name)
        admin.execute(f"drop database {name} with (force)".encode())


def test_up_installs_the_schema_and_runs_jobs(empty: str, folder: Path) -> None:
    cli = Cli(empty)
    with running(
        "up", "--no-api", "shop:app", folder=folder, environment=clean_environment(empty)
    ) as it:
        assert it.stdout is not None
        assert it.stdout.readline().startswith("Schema installed at version ")
        until(lambda: cli.json("workers", "list"), "the worker is there")
        done = cli.json("jobs", "enqueue", "double", "-a", "number=4", "--wait", "--timeout", "3m")
        assert done["result"] == 8
        assert "Running the jobs of shop:app" in stop(it)
    again = running("up", "--no-api", folder=folder, environment=clean_environment(empty))
    with again as it:
        assert it.stdout is not None
        assert it.stdout.readline().startswith("The schema is at version ")


def test_up_without_an_application_does_the_duties(database: Database, folder: Path) -> None:
    cli = Cli(database.dsn)
    database.move_time("1 hour")
    assert not duties_are_done(cli)
    with running(
        "up", "--no-api", folder=folder, environment=clean_environment(database.dsn)
    ) as it:
        until(lambda: duties_are_done(cli), "the duties are done")
        out = stop(it, signal.SIGINT)
    assert "no jobs are run" in out
    assert database.name in out
    assert out.endswith("Ended.\n")


def test_up_without_an_application_survives_the_loss_of_its_connection(
    database: Database, folder: Path
) -> None:
    cli = Cli(database.dsn)
    with running(
        "up", "--no-api", folder=folder, environment=clean_environment(database.dsn)
    ) as it:
        for _ in range(2):
            database.move_time("1 hour")
            until(lambda: duties_are_done(cli), "the duties are done again")
            ended = database.superuser().execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'trunkline duties' and datname = current_database()"
            )
            assert ended.rowcount == 1
        stop(it)


def test_up_without_an_application_ends_under_a_schema_that_is_too_new(
    database: Database, folder: Path
) -> None:
    """Without a reconnect; it says which package it needs and does no further duties."""
    cli = Cli(database.dsn)
    database.move_time("1 hour")
    with running(
        "up", "--no-api", folder=folder, environment=clean_environment(database.dsn)
    ) as it:
        until(lambda: duties_are_done(cli), "the duties are done")
        newer.apply_contract(database.superuser(), oldest=CONTRACT)
        database.move_time("1 hour")
        until(lambda: duties_are_done(cli), "it is still served")
        newer.apply_contract(database.superuser(), oldest=CONTRACT + 1)
        out, _ = it.communicate(timeout=300)
    assert it.returncode == 4, out
    assert "schema_newer_than_client" in out
    assert f"trunkline>={newer.RELEASE}" in out
    assert "Lost the server" not in out


def test_up_with_the_embedded_server() -> None:
    base = Path(tempfile.mkdtemp(prefix="trunkline-"))
    environment = clean_environment() | {"TRUNKLINE_HOME": str(base / "home")}
    try:
        with running("up", "--no-api", folder=base, environment=environment) as it:
            assert it.stdout is not None
            lines: list[str] = []
            while "Ctrl-C" not in "".join(lines):
                lines.append(it.stdout.readline())
                assert lines[-1], lines
            assert "trunkline db psql" in "".join(lines)
            assert process("queues", "list", environment=environment).returncode == 0
            stop(it)
        assert not service.status(base / "home").running
    finally:
        service.stop(base / "home", force=True)
        shutil.rmtree(base, ignore_errors=True)
