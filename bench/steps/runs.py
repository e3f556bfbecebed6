"""Runs jobs with steps in a separate process, and returns how long they took."""

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.place import Place
from bench.rivals.product import ROOT, libpq_variables

__all__ = ["run_dbos", "run_ours"]

_LONGEST = 900.0


def run_ours(place: Place, jobs: int, steps: int, concurrency: int) -> float:
    """Return the seconds that one worker process took for the jobs."""
    with place.database("steps") as dsn:
        return _run(
            [sys.executable, "-m", "bench.apps.step_jobs", *_texts(jobs, steps, concurrency)],
            {**os.environ, "TRUNKLINE_DSN": dsn, **place.python_path},
        )


def run_dbos(place: Place, python: Path, workflows: int, steps: int) -> float:
    """Return the seconds that one DBOS process took for the workflows."""
    with place.empty_database("dbos_steps") as dsn:
        command = [str(python), "-m", "bench.rivals.dbos_steps", *_texts(workflows, steps)]
        return _run(command, libpq_variables(dsn))


def _texts(*numbers: int) -> list[str]:
    return [str(number) for number in numbers]


def _run(command: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_LONGEST,
    )
    if done.returncode:
        raise RuntimeError(f"{command[2]} failed:\n{done.stderr[-2000:]}")
    seconds: float = json.loads(done.stdout.splitlines()[-1])["seconds"]
    return seconds
