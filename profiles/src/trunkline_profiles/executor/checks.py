"""The validation tests of the profile: they leave nothing behind, also in production."""

from __future__ import annotations

from dataclasses import dataclass

from trunkline.errors import ProfileNotInstalled
from trunkline.profiles import installer
from trunkline.profiles.profile import render, schema_name
from trunkline.schema.plan import Step
from trunkline.schema.session import run
from trunkline_profiles.executor import PROFILE

__all__ = ["Check", "validate"]


@dataclass(frozen=True, slots=True)
class Check:
    """One validation test and how it came out."""

    requirement: str
    test: str
    expected: str
    found: str
    passed: bool


def validate(dsn: str, *, schema: str | None = None) -> tuple[Check, ...]:
    """Run the tests in a transaction that is rolled back, whatever comes of them.

    Needs a role that may act as trunkline_owner, since the transaction turns its own clock back.
    """
    target = schema_name(schema or PROFILE.schema)
    states = installer.status(dsn, PROFILE, schema=target)
    missing = [s.script for s in states if s.phase == "phase1" and s.state == "missing"]
    if missing:
        raise ProfileNotInstalled(
            f"Phase 1 of the profile is not installed in schema {target}",
            hint="Install it with: trunkline profile install executor",
        )
    with (
        installer.session(dsn, PROFILE, target) as connection,
        connection.transaction(force_rollback=True),
    ):
        text = render(PROFILE.text("validate", "tests.sql"), PROFILE.schema, target)
        run(connection, Step("validate/tests", text))
        rows = installer.ask(connection, PROFILE, "validation", target)
    return tuple(Check(*row) for row in rows)
