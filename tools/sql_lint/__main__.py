"""Checks the SQL of the engine and of the profiles; exits with 1 if a rule is violated."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.sql_lint import body_rules, locks, object_rules, text_rules
from tools.sql_lint.source import Finding, read

_ROOT = Path(__file__).parents[2]
ENGINE = _ROOT / "src" / "trunkline" / "sql"
PROFILES = _ROOT / "profiles" / "src" / "trunkline_profiles"


def lint(path: str, text: str) -> list[Finding]:
    """Check one file; ``path`` is relative to the engine's folder."""
    file = read(path, text)
    text_rules.check(file)
    object_rules.check(file)
    body_rules.check(file)
    return sorted(set(file.findings))


def lint_script(path: str, text: str) -> list[Finding]:
    """Check one script of a profile, which has several objects with names of another system."""
    file = read(path, text)
    text_rules.check(file)
    return sorted(set(file.findings))


def main() -> int:
    paths = sorted(ENGINE.rglob("*.sql"))
    findings = [
        f"src/trunkline/sql/{finding}"
        for path in paths
        for finding in lint(path.relative_to(ENGINE).as_posix(), path.read_text(encoding="utf-8"))
    ]
    findings += [f"src/trunkline/sql/{finding}" for finding in locks.check(ENGINE)]
    # Files in ask/ are statements for psycopg, with its placeholders.
    scripts = sorted(path for path in PROFILES.rglob("*.sql") if path.parent.name != "ask")
    findings += [
        str(finding)
        for path in scripts
        for finding in lint_script(
            path.relative_to(_ROOT).as_posix(), path.read_text(encoding="utf-8")
        )
    ]
    for finding in findings:
        print(finding)
    print(f"{len(paths) + len(scripts)} SQL files, {len(findings)} violations of the house rules")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
