"""Checks the SQL of the engine; exits with 1 when a rule is broken."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.sql_lint import body_rules, locks, object_rules, text_rules
from tools.sql_lint.source import Finding, read

ENGINE = Path(__file__).parents[2] / "src" / "trunkline" / "sql"


def lint(path: str, text: str) -> list[Finding]:
    """Check one file; ``path`` is relative to the engine's folder."""
    file = read(path, text)
    text_rules.check(file)
    object_rules.check(file)
    body_rules.check(file)
    return sorted(set(file.findings))


def main() -> int:
    paths = sorted(ENGINE.rglob("*.sql"))
    findings = [
        finding
        for path in paths
        for finding in lint(path.relative_to(ENGINE).as_posix(), path.read_text(encoding="utf-8"))
    ]
    findings += locks.check(ENGINE)
    for finding in findings:
        print(f"src/trunkline/sql/{finding}")
    print(f"{len(paths)} SQL files, {len(findings)} breaches of the house rules")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
