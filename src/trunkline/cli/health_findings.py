"""What the doctor reports about rows of trunkline.health() that need more than one sentence."""

from __future__ import annotations

from typing import Final

from trunkline.cli.finding import Finding
from trunkline.cli.output import clean, count
from trunkline.db.calls import checks

__all__ = ["of_breakers", "of_set_aside"]

_SHOWN: Final = 3


def of_set_aside(row: checks.HealthCheck) -> Finding:
    """How many jobs are set aside, and whether for too long."""
    detail = row.detail or {}
    if row.ok:
        jobs = int(detail.get("jobs", 0))
        message = f"{count(jobs, 'job')}; see: trunkline limits list" if jobs else "none"
        return Finding(row.check, "ok", message)
    return Finding(
        row.check,
        "warn",
        f"{count(int(detail.get('overdue', 0)), 'job')} set aside for too long, because they cost"
        " more than their limit ever gives at once",
        "Find the limits with: trunkline limits list; raise them, or cancel the jobs",
    )


def of_breakers(row: checks.HealthCheck) -> Finding:
    """Which breakers are not closed."""
    names = [clean(name) for name in (row.detail or {}).get("open", [])]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Finding(
        row.check,
        "warn",
        f"not closed: {', '.join(names[:_SHOWN])}{more}",
        "What waits behind them is tried one at a time; see: trunkline breakers list",
    )
