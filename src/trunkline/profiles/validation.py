"""Validation tests that a profile ships: they leave nothing behind, also in production."""

from __future__ import annotations

from dataclasses import dataclass

from trunkline.errors import ProfileError, ProfileNotInstalled
from trunkline.profiles import installer
from trunkline.profiles.profile import Profile, render
from trunkline.profiles.sessions import session
from trunkline.schema.plan import Step
from trunkline.schema.session import run

__all__ = ["Check", "validate"]


@dataclass(frozen=True, slots=True)
class Check:
    """One validation test and its result."""

    requirement: str
    test: str
    expected: str
    found: str
    passed: bool


def validate(dsn: str, profile: Profile, *, schema: str | None = None) -> tuple[Check, ...]:
    """Run validate/tests.sql in a transaction that is rolled back, and ask ``validation``.

    Needs a role that may act as trunkline_owner, since the transaction turns its own clock back.
    """
    if not profile.has_validation:
        raise ProfileError(f"Profile {profile.name} has no validation tests")
    core = {phase.name for phase in profile.phases if phase.core}
    states = installer.status(dsn, profile, schema=schema)
    missing = [s.script for s in states if s.phase in core and s.state == "missing"]
    if missing:
        raise ProfileNotInstalled(
            f"The core of profile {profile.name} is not installed in schema "
            f"{schema or profile.schema}",
            hint=f"Install it with: trunkline profile install {profile.name}",
        )
    with (
        session(dsn, profile, schema=schema) as opened,
        opened.connection.transaction(force_rollback=True),
    ):
        text = render(profile.text("validate", "tests.sql"), profile.schema, opened.schema)
        run(opened.connection, Step("validate/tests", text))
        rows = opened.ask("validation")
    return tuple(Check(*row) for row in rows)
