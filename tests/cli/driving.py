"""The command line driven by tests: in this process, which is quick, or as one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

from click.testing import CliRunner, Result
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt, Calls
from trunkline.cli.main import cli as whole

__all__ = ["PROGRAM", "Cli", "clean_environment", "die", "finish", "process"]

PROGRAM = (sys.executable, "-c", "from trunkline.cli.main import main; main()")


class Cli:
    """Runs commands against one database."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def run(self, *arguments: object, answer: str | None = None) -> Result:
        """Run a command; errors of ours are raised as they are."""
        runner = CliRunner(env={"TRUNKLINE_DSN": self.dsn, "COLUMNS": None})
        return runner.invoke(
            whole, [str(argument) for argument in arguments], input=answer, catch_exceptions=False
        )

    def text(self, *arguments: object) -> str:
        """Run a command that must succeed, and return what it printed."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: object) -> Any:
        """The same with --json, decoded."""
        return json.loads(self.text(*arguments, "--json"))


def process(
    *arguments: object,
    dsn: str | None = None,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
    answer: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command line as users do, and wait for its end."""
    return subprocess.run(
        [*PROGRAM, *(str(argument) for argument in arguments)],
        env=clean_environment(dsn) | (environment or {}),
        cwd=folder,
        input=answer or "",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def clean_environment(dsn: str | None = None) -> dict[str, str]:
    """Ours without settings of Trunkline, and with the given server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")}
    return kept | ({"TRUNKLINE_DSN": dsn} if dsn else {})


def finish(calls: Calls, count: int = 1, **fields: Any) -> list[UUID]:
    """Enqueue jobs and complete them."""
    jobs = calls.fill(count, **{"task": "send"} | fields)
    claim = calls.claim("finisher", count)
    assert set(claim.jobs) == set(jobs)
    calls.batch("complete", "finisher", claim.attempts)
    return jobs


def die(
    calls: Calls, count: int = 1, message: str = "no such address", **fields: Any
) -> list[UUID]:
    """Enqueue jobs that may fail once, and let them."""
    jobs = calls.fill(count, **{"task": "once"} | fields)
    attempts: list[Attempt] = calls.claim("undertaker", count).attempts
    assert {attempt.job for attempt in attempts} == set(jobs)
    error = {"type": "ValueError", "message": message, "traceback": "line 1\nline 2"}
    calls.batch("fail", "undertaker", attempts, errors=[Jsonb(error)] * count)
    return jobs
