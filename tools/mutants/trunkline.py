"""Trunkline as a project to mutate: its sources and the folders of their tests."""

from __future__ import annotations

import re
from pathlib import Path

from tools.mutants.mutation import Mutation
from tools.mutants.project import Domain, Project

__all__ = ["trunkline"]

_ENGINE = "src/trunkline/sql"
_PROFILES = "profiles/src/trunkline_profiles"
_PROFILE_TESTS = "profiles/tests"
_PACKAGE = "src/trunkline"
_REFUSALS = ("tests/integration/bad_input", "tests/integration/security")
_CALLERS = ("tests/client", "tests/cli", "tests/worker", "tests/flow", _PROFILE_TESTS)

_DOMAINS = {
    "queue": Domain(
        [f"{_ENGINE}/queue"],
        ["tests/sql", "tests/property", "tests/concurrency"],
        [*_REFUSALS, "tests/plans", *_CALLERS],
    ),
    "workflows": Domain(
        [f"{_ENGINE}/workflows"],
        ["tests/workflows", "tests/sql", "tests/property"],
        [*_REFUSALS, "tests/plans", "tests/concurrency"],
    ),
    "flow": Domain(
        [
            f"{_ENGINE}/{name}"
            for name in ("limits", "buckets", "shared_charging", "usage", "breakers")
        ],
        ["tests/flow", "tests/sql/flow", "tests/property"],
        [*_REFUSALS, "tests/plans", "tests/sql", "tests/concurrency", *_CALLERS],
    ),
    "operate": Domain(
        [f"{_ENGINE}/operate", f"{_PACKAGE}/operate"],
        ["tests/operate"],
        [*_REFUSALS, "tests/plans", "tests/sql"],
    ),
    "duties": Domain(
        [f"{_ENGINE}/duties"],
        [
            *("tests/integration/duties", "tests/sql", "tests/concurrency/test_duties.py"),
            "tests/chaos/test_clock.py",
        ],
        [*_REFUSALS, "tests/concurrency", "tests/plans", "tests/migrations", *_CALLERS],
    ),
    "schedules": Domain(
        [f"{_ENGINE}/schedules"],
        ["tests/integration/schedules", "tests/sql/schedules", "tests/property/test_cron.py"],
        ["tests/sql", *_REFUSALS, "tests/concurrency", *_CALLERS],
    ),
    "workers": Domain(
        [f"{_ENGINE}/workers"],
        ["tests/sql", "tests/concurrency/test_wake_up.py"],
        [*_REFUSALS, "tests/concurrency", *_CALLERS],
    ),
    "settings": Domain([f"{_ENGINE}/settings"], ["tests/sql"], [*_REFUSALS, *_CALLERS]),
    "security": Domain(
        [f"{_ENGINE}/security"],
        [*_REFUSALS, "tests/sql"],
        ["tests/integration/catalog", "tests/migrations", *_CALLERS],
    ),
    "profiles": Domain(
        [f"{_PACKAGE}/profiles", f"{_PROFILES}/__init__.py"],
        ["tests/profiles", f"{_PROFILE_TESTS}/executor/test_cli.py"],
        [_PROFILE_TESTS],
    ),
    "executor": Domain(
        [f"{_PROFILES}/executor"],
        [
            f"{_PROFILE_TESTS}/executor/test_{name}.py"
            for name in (
                *("handlers", "record", "phases", "reclaim", "wake_ups", "trouble"),
                "monitoring",
            )
        ],
        [_PROFILE_TESTS],
    ),
    "clinical": Domain(
        [f"{_PROFILES}/clinical"],
        [
            f"{_PROFILE_TESTS}/clinical/test_{name}.py"
            for name in ("handlers", "programs", "cp_work", "cp_enqueue", "cp_audit")
        ],
        [_PROFILE_TESTS],
    ),
    "worker": Domain(
        [f"{_PACKAGE}/worker"],
        ["tests/worker"],
        ["tests/chaos", "tests/client", "tests/cli", "tests/concurrency"],
    ),
    "handler": Domain(
        [f"{_PACKAGE}/handler"],
        ["tests/unit/handler", "tests/worker"],
        ["tests/testing", "tests/flow", "tests/profiles"],
    ),
    "client": Domain(
        [f"{_PACKAGE}/client"],
        ["tests/unit/client", "tests/client"],
        ["tests/testing", "tests/worker", "tests/flow", "tests/cli"],
    ),
    "db": Domain(
        [f"{_PACKAGE}/db"],
        ["tests/unit/db", "tests/unit/client", "tests/client"],
        [
            *("tests/worker", "tests/cli", "tests/chaos", "tests/migrations"),
            "tests/integration",
        ],
    ),
    "cli": Domain(
        [f"{_PACKAGE}/cli"],
        ["tests/cli"],
        [_PROFILE_TESTS, "tests/backup", "tests/migrations", "tests/integration/embedded"],
    ),
    "embedded": Domain(
        [f"{_PACKAGE}/embedded"],
        ["tests/unit/embedded", "tests/integration/embedded"],
        ["tests/chaos", "tests/cli"],
    ),
    "schema": Domain(
        [f"{_PACKAGE}/schema", f"{_ENGINE}/__init__.py"],
        ["tests/unit/schema", "tests/migrations"],
        ["tests/cli", "tests/integration/catalog", _PROFILE_TESTS],
    ),
    "backup": Domain(
        [f"{_PACKAGE}/backup"], ["tests/unit/backup", "tests/backup"], ["tests/docs/test_backup.py"]
    ),
    "testing": Domain([f"{_PACKAGE}/testing"], ["tests/unit/testing", "tests/testing"]),
    "model": Domain(
        [f"{_PACKAGE}/{name}" for name in ("model", "errors", "telemetry")],
        ["tests/unit", "tests/client"],
        ["tests/worker", "tests/cli"],
    ),
}

_LEFT_OUT = re.compile(
    # Released migrations; the generated twin of the asynchronous client; stubs of outside
    # services; demonstrations; texts about errors.
    r"/migrations/|/_sync/|/stubs/|/demo|/sql/validate/|/errors/(?!base|refusals|durable_refusals)"
)
# They compare generated pages with their sources and would detect any change of a text.
_NO_TESTS = frozenset({"tests/docs/test_generators.py", "tests/unit/test_requirements.py"})


def trunkline(root: Path) -> Project:
    """The project in this folder, with tests only on the embedded server."""
    return Project(
        root=root,
        package="trunkline",
        domains=_DOMAINS,
        source_folders=["src", "profiles/src"],
        test_folders=["tests", _PROFILE_TESTS],
        left_out=_LEFT_OUT,
        no_tests=_NO_TESTS,
        checks=_checks,
        written=[f"{_ENGINE}/catalog.json"],
        processes=3,
        environment={"TRUNKLINE_TEST_SERVERS": "18"},
        equivalents=Path(__file__).with_name("equivalents.toml"),
    )


def _checks(mutation: Mutation) -> list[list[str]]:
    if mutation.path.endswith(".sql"):
        # Profiles only for their own scripts: if the engine breaks one, the tests should detect it.
        names = ["clinical", "executor"] if mutation.path.startswith(_PROFILES) else []
        return [["-m", "tools.mutants.install", *names]]
    path = mutation.path.rpartition("src/")[2].removesuffix(".py")
    module = path.replace("/", ".")
    return [["-c", f"import {module.removesuffix('.__init__')}"]]
