"""Checks with squawk whether a migration would lock a table for long."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.sql_lint.source import Finding

__all__ = ["check"]

# Excluded rules, with reasons.
EXCLUDED = {
    "prefer-bigint-over-int": "versions, attempts and counts of deferrals never exceed two billion",
    "prefer-bigint-over-smallint": "jobs move from table to table, so narrow rows matter",
    "require-lock-timeout": "set by the caller that runs the migration, schema/plan.py",
    "require-statement-timeout": "a stuck migration waits for a lock, which has a timeout",
}
_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+):\d+: \w+: (?P<message>.+)")


def check(folder: Path) -> list[Finding]:
    """Run squawk over the migrations in a folder; it needs no network."""
    command = Path(sys.executable).with_name("squawk")
    files = sorted(str(path) for path in (folder / "migrations").rglob("*.sql"))
    done = subprocess.run(
        [
            str(command),
            "--assume-in-transaction",
            "--pg-version=15",
            "--reporter=gcc",
            f"--exclude={','.join(EXCLUDED)}",
            *files,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [_LINE.match(line) for line in done.stdout.splitlines()]
    findings = [
        Finding(Path(m["path"]).relative_to(folder).as_posix(), int(m["line"]), m["message"])
        for m in found
        if m
    ]
    if done.returncode != 0 and not findings:
        return [Finding("migrations", 1, f"squawk failed: {done.stderr.strip()}")]
    return findings
