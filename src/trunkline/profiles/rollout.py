"""Steps of a profile's roll-out: each can be tried, each leaves a record, refused or not."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from trunkline.db.translate import translated
from trunkline.errors import SQLSTATES, ProfileError, TrunklineError
from trunkline.profiles.profile import Profile
from trunkline.profiles.sessions import Session, session

__all__ = ["Result", "Step", "ask_health", "check", "run", "steps", "take_over"]

_HEALTH_TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan and what came of it last; ``outcome`` is null where it was never taken."""

    plan: str
    step: str
    at: str
    proof: str
    title: str
    outcome: str | None
    dry_run: bool | None
    last_at: datetime | None
    actor: str | None
    evidence: str | None
    detail: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a step: ``done``, ``would_do`` (a dry run) or ``refused`` with its problems."""

    plan: str
    step: str
    dry_run: bool
    outcome: str
    detail: dict[str, Any]
    evidence: str | None
    at: datetime
    actor: str


def steps(
    dsn: str, profile: Profile, plan: str | None = None, *, schema: str | None = None
) -> tuple[Step, ...]:
    """The steps of a plan, or of all, in their order."""
    _require_rollout(profile)
    with session(dsn, profile, schema=schema) as opened:
        return _steps(opened, plan)


def run(
    dsn: str,
    profile: Profile,
    plan: str,
    step: str,
    *,
    dry_run: bool = False,
    evidence: str | None = None,
    problems: Iterable[str] = (),
    schema: str | None = None,
) -> Result:
    """Take one step, or try it; ``problems`` are what the caller saw outside of the database."""
    _require_rollout(profile)
    facts = {"plan": plan, "step": step, "dry_run": dry_run, "evidence": evidence}
    with session(dsn, profile, schema=schema) as opened:
        return _run(opened, facts | {"problems": list(problems)})


def check(dsn: str, profile: Profile, *, schema: str | None = None) -> tuple[Step, ...]:
    """Go through the checklist: take each step that a query can prove, and return all of them."""
    _require_rollout(profile)
    facts = {"plan": "checklist", "dry_run": False, "evidence": None, "problems": []}
    # One transaction: a connection for each step took most of the time.
    with session(dsn, profile, schema=schema) as opened:
        for one in _steps(opened, "checklist"):
            if one.proof == "auto":
                _run(opened, facts | {"step": one.step})
        return _steps(opened, "checklist")


def take_over(
    dsn: str,
    profile: Profile,
    step: str,
    table: str,
    *,
    dry_run: bool = False,
    schema: str | None = None,
) -> dict[str, Any]:
    """Take errors, files or jobs of an older table over; a dry run does it and rolls it back.

    Needs a role that may act as trunkline_owner and owns the older table.
    """
    _require_rollout(profile)
    facts: dict[str, Any] = {"step": step, "table": table, "dry_run": dry_run}
    problem: TrunklineError | None = None
    with session(dsn, profile, schema=schema) as opened:
        try:
            with (
                translated(SQLSTATES | profile.sqlstates),
                opened.connection.transaction(force_rollback=dry_run),
            ):
                ((detail,),) = opened.ask("take_over", **facts)
        except TrunklineError as error:
            # Put on record below, then raised: what was refused is a result as well.
            problem, detail = error, {"problems": [str(error)]}
        opened.ask("record_take_over", **facts, detail=json.dumps(detail))
    if problem is not None:
        raise problem
    found: dict[str, Any] = detail
    return found


def ask_health(urls: Iterable[str]) -> tuple[str, ...]:
    """Ask the health endpoints of functions; returns what is wrong with them."""
    problems = []
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise ProfileError(f"{url!r} is no address of a health endpoint")
        try:
            with urllib.request.urlopen(url, timeout=_HEALTH_TIMEOUT) as answer:  # noqa: S310 - checked above
                if answer.status != 200:
                    problems.append(f"{url} answered {answer.status}")
        except urllib.error.HTTPError as error:
            problems.append(f"{url} answered {error.code}")
        except OSError as error:
            problems.append(f"{url} did not answer: {error}")
    return tuple(problems)


def _steps(opened: Session, plan: str | None) -> tuple[Step, ...]:
    return tuple(Step(*row) for row in opened.ask("rollout_steps", plan=plan))


def _run(opened: Session, facts: dict[str, Any]) -> Result:
    (row,) = opened.ask("run_step", **facts)
    return Result(*row)


def _require_rollout(profile: Profile) -> None:
    if not profile.has_rollout:
        raise ProfileError(f"Profile {profile.name} has no steps of a roll-out")
