"""Runs the bench as its users do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

from tests.support.servers import Server

__all__ = ["databases_left", "figures_of", "run_bench"]

_ROOT = Path(__file__).parents[2]


def run_bench(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it with these environment variables, and none of ours in addition."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")}
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=_ROOT,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )


def figures_of(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The object on its last line."""
    assert result.returncode == 0, result.stderr + result.stdout
    figures: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return figures


def databases_left(server: Server, figures: dict[str, Any]) -> list[tuple[str]]:
    """Databases of that run; another test may run the bench on the same server."""
    assert figures["databases"].startswith("trunkline_bench_")
    with psycopg.connect(server.superuser_dsn) as connection:
        return connection.execute(
            "select datname from pg_database where starts_with(datname, %s)",
            (figures["databases"],),
        ).fetchall()
