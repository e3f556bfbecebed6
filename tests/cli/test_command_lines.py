"""No process that we start has a password in its command line, which every user can read."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.driving import PROGRAM, Cli, clean_environment, process
from tests.support.databases import Database
from tests.support.waiting import DEADLINE, until
from tests.support.worker_process import descendants

PASSWORD = "s3cret-of-the-installer"

APPLICATION = """
import os
from trunkline import Trunkline

app = Trunkline(os.environ.get("SHOP_DSN"))

@app.task(process=True)
def linger(folder: str) -> None:
    import pathlib, time
    while not (pathlib.Path(folder) / "go").exists():
        time.sleep(0.05)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APPLICATION)
    return tmp_path


@pytest.fixture
def secret(database: Database) -> str:
    """The same database with a password, which the server does not look at on its socket."""
    user, found, rest = database.dsn.partition("@")
    assert found
    return f"{user}:{PASSWORD}@{rest}"


def lines(pid: int) -> dict[int, str]:
    """The command lines of everything that a process started."""
    found = {}
    for child in descendants(pid):
        with suppress(OSError):
            found[child] = Path(f"/proc/{child}/cmdline").read_bytes().decode().replace("\0", " ")
    return found


@contextmanager
def running(
    *arguments: str, folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )
    try:
        yield started
    finally:
        (folder / "go").touch()
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        print((folder / "log").read_text())


def require_secrecy(pid: int, enough: Callable[[list[str]], bool]) -> None:
    """Look at all descendants until there are those that matter."""
    every: dict[str, None] = {}

    def look() -> bool:
        every.update(dict.fromkeys(lines(pid).values()))
        return enough(list(lines(pid).values()))

    until(look, "the processes are there")
    for line in every:
        assert PASSWORD not in line
        assert "postgresql://" not in line
        assert "trunkline_installer" not in line


@pytest.mark.parametrize(
    ("command", "variable"),
    [
        (("up", "--no-api", "shop:app", "--processes", "2"), "TRUNKLINE_DSN"),
        (("up", "--no-api", "shop:app", "--processes", "2"), "SHOP_DSN"),
        (("up", "--no-api", "shop:app", "--processes", "2"), None),
        (("worker", "shop:app", "--processes", "2"), None),
        (("worker", "shop:app", "--memory-limit", "4GB"), "TRUNKLINE_DSN"),
    ],
    ids=["up-environment", "up-application", "up-option", "worker-option", "worker-memory"],
)
def test_workers_and_their_handler_processes(
    secret: str, database: Database, folder: Path, command: tuple[str, ...], variable: str | None
) -> None:
    wanted = 2 if "--processes" in command else 1
    environment = clean_environment() | ({variable: secret} if variable else {})
    given = () if variable else ("--dsn", secret, "--listen-dsn", secret)
    with running(*command, *given, folder=folder, environment=environment) as started:
        cli = Cli(database.dsn)
        until(lambda: len(cli.json("workers", "list")) == wanted, "the workers are there")
        cli.text("jobs", "enqueue", "linger", "-a", f"folder={folder}")
        require_secrecy(
            started.pid,
            lambda found: (
                sum("trunkline.worker.supervised" in line for line in found) == wanted
                and any("trunkline.worker.process_child" in line for line in found)
            ),
        )


def test_psql(secret: str, tmp_path: Path) -> None:
    shown = process(
        "db", "psql", "-At", "-c", "select 6 * 7", "-c", r"\! tr '\0' ' ' < /proc/$PPID/cmdline",
        dsn=secret, environment={"TRUNKLINE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert "42" in shown.stdout
    assert "-c" in shown.stdout
    assert PASSWORD not in shown.stdout


def test_psql_still_gets_the_password(secret: str, tmp_path: Path) -> None:
    home = {"TRUNKLINE_HOME": str(tmp_path)}
    shown = process("db", "psql", "-At", "-c", r"\! echo $PGPASSWORD", dsn=secret, environment=home)
    assert shown.stdout.strip() == PASSWORD


def test_psql_does_not_show_the_password_of_a_key(tmp_path: Path) -> None:
    home = {"TRUNKLINE_HOME": str(tmp_path)}
    refused = process("db", "psql", dsn=f"host=nowhere sslpassword={PASSWORD}", environment=home)
    assert refused.returncode == 1
    assert PASSWORD not in refused.stderr
    assert "service file" in refused.stderr


@pytest.mark.parametrize(
    ("command", "worker"),
    [
        (("demo", "--seconds", "60"), "trunkline.demo.tasks:app"),
        (("profile", "demo", "executor"), "run_worker"),
        (("profile", "demo", "clinical"), "-m trunkline_profiles.clinical"),
    ],
    ids=["demo", "executor", "clinical"],
)
def test_demonstrations(tmp_path: Path, command: tuple[str, ...], worker: str) -> None:
    environment = clean_environment()
    with running(*command, folder=tmp_path, environment=environment) as started:
        require_secrecy(started.pid, lambda found: any(worker in line for line in found))
        started.send_signal(signal.SIGINT)
        started.wait(DEADLINE)
