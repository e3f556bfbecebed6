"""Runs a pgTAP file with psql, and checks its output."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.databases import Database
from trunkline.embedded.server import INSTALLER

_PLAN = re.compile(r"^1\.\.(\d+)(?:\s+#.*)?$")
_RESULT = re.compile(r"^(not )?ok\b(?:\s+(\d+))?(.*)$")
_EXCUSED = re.compile(r"#\s*(todo|skip)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The problems of a run, none if it passed, and its whole output."""

    problems: list[str]
    output: str


def judge(output: str) -> list[str]:
    """Return the problems of a TAP stream: failures, no plan, or another number than planned."""
    problems: list[str] = []
    planned: int | None = None
    ran = 0
    for line in output.splitlines():
        if plan := _PLAN.match(line):
            planned = int(plan.group(1))
        elif result := _RESULT.match(line):
            ran += 1
            if result.group(1) and not _EXCUSED.search(result.group(3)):
                problems.append(line)
    if planned is None:
        problems.append("no plan")
    elif planned != ran:
        problems.append(f"planned {planned}, ran {ran}")
    return problems


def run(database: Database, file: Path) -> Verdict:
    """Run the file as one session.

    It starts as the installer role with pgTAP on the search path. It can change to any role with
    ``set session authorization``, because the login is a superuser's.
    """
    psql = Path(database.server.bindir) / "psql"
    result = subprocess.run(
        [
            psql,
            database.superuser_dsn,
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            "--command=set search_path = tap, public",
            f"--command=set session authorization {INSTALLER}",
            f"--file={file}",
        ],
        cwd=file.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    problems = judge(result.stdout)
    if result.returncode != 0:
        problems.append(f"psql ended with {result.returncode}")
    return Verdict(problems, result.stdout + result.stderr)
