"""What the doctor reports about rows of trunkline.health() that need more than one sentence."""

from __future__ import annotations

from typing import Final

from trunkline.cli.finding import Finding
from trunkline.cli.output import clean, count
from trunkline.model import HealthCheck

__all__ = ["of_breakers", "of_deferred", "of_set_aside"]

_SHOWN: Final = 3


def _jobs(number: int, most: int | None) -> str:
    """A number of jobs; if it is at least the bound it was counted up to, that many or more."""
    return count(number, "job") + (" or more" if most is not None and number >= most else "")


def of_deferred(row: HealthCheck) -> Finding:
    """How many jobs were deferred too often or for too long."""
    detail = row.detail or {}
    if not row.ok:
        return Finding(
            row.check,
            "warn",
            f"{_jobs(int(detail.get('jobs', 0)), detail.get('counted_up_to'))} deferred too often"
            " or for too long",
            "See them with: trunkline db psql -c 'select * from trunkline.deferred_jobs()'",
        )
    some = " among those deferred the longest" if "counted_up_to" in detail else ""
    return Finding(row.check, "ok", f"none{some}")


def of_set_aside(row: HealthCheck) -> Finding:
    """How many jobs are set aside, and whether for too long."""
    detail = row.detail or {}
    most = int(detail.get("counted_up_to", 0))
    jobs, overdue = int(detail.get("jobs", 0)), int(detail.get("overdue", 0))
    if row.ok:
        message = f"{_jobs(jobs, most)}; see: trunkline limits list" if jobs else "none"
        return Finding(row.check, "ok", message)
    return Finding(
        row.check,
        "warn",
        f"{_jobs(overdue, most)} set aside for too long, because they cost"
        " more than their limit can ever allow",
        "Find the limits with: trunkline limits list; raise them, or cancel the jobs",
    )


def of_breakers(row: HealthCheck) -> Finding:
    """Which breakers are not closed."""
    names = [clean(name) for name in (row.detail or {}).get("open", [])]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Finding(
        row.check,
        "warn",
        f"not closed: {', '.join(names[:_SHOWN])}{more}",
        "What waits behind them is tried one at a time; see: trunkline breakers list",
    )
