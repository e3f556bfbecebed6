"""What the README shows is run: its commands in a shell, its SQL through psql."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support.databases import Database

ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_commands_of_the_first_screen(tmp_path: Path) -> None:
    commands = [
        line.removeprefix("$ ")
        for block in blocks("console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    assert "trunkline schema install" in commands
    # Setting up is what made the environment this test runs in.
    script = "\n".join(command for command in commands if command != "make setup")
    environment = {k: v for k, v in os.environ.items() if k != "TRUNKLINE_DSN"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607 - bash of this machine
        cwd=ROOT,
        env=environment | {"TRUNKLINE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "receipt for order 1 sent to ann@example.com" in done.stdout
    assert "equal" in done.stdout.lower()


def test_the_sql_example(database: Database) -> None:
    (example,) = blocks("sql")
    done = subprocess.run(
        ["psql", database.dsn, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-At"],  # noqa: S607
        input=example,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PGTZ": "UTC"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["ok", "ok|completed", 'completed|{"sent": true}']
    with psycopg.connect(**conninfo_to_dict(database.dsn)) as connection:  # type: ignore[arg-type]
        assert connection.execute("select count(*) from orders").fetchone() == (1,)


def test_the_demo_balances() -> None:
    """What `make demo` runs, as programs see it."""
    trunkline = ROOT / ".venv" / "bin" / "trunkline"
    done = subprocess.run(
        [str(trunkline), "demo", "--json", "--seconds", "8"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    account = json.loads(done.stdout)
    assert account["lost"] == 0
    assert account["duplicates"] == 0
    assert account["enqueued"] == account["completed"] + account["cancelled"] + account["dead"]
    # The worker that was killed held something, and nobody believed its ghost.
    assert account["reclaimed"] >= account["stale_rejected"] > 0
    assert account["completed"] > account["dead"] > 0
    assert account["cancelled"] > 0
    assert {"reclaimed", "stale_rejected", "seconds"} <= account.keys()
