"""What rows of `trunkline.health()` mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from trunkline.model import Finding, HealthCheck
from trunkline.telemetry import count

__all__ = ["health_findings"]

_SHOWN: Final = 3
_GOOD: Final = {
    "artifacts": "all present",
    "breakers": "all closed",
    "claims": "enabled",
    "default partitions": "not in use",
}


def health_findings(checks: Sequence[HealthCheck], *, worker_alive: bool) -> Iterator[Finding]:
    """Yield the findings; duties that are late are a failure only if a live worker runs them."""
    yield from _duties(
        [check for check in checks if _is_duty(check) and not check.ok], worker_alive
    )
    for check in checks:
        if not _is_duty(check):
            yield _finding(check)


def _is_duty(check: HealthCheck) -> bool:
    return check.check.startswith("duty ")


def _duties(checks: Sequence[HealthCheck], worker_alive: bool) -> Iterator[Finding]:
    enabled = {
        check.check.removeprefix("duty "): bool((check.detail or {}).get("enabled", True))
        for check in checks
    }
    if late := [name for name, is_enabled in enabled.items() if is_enabled]:
        yield Finding(
            "duties",
            "fail" if worker_alive else "warn",
            f"late or failing: {', '.join(late)}",
            "See why with: trunkline duties list"
            if worker_alive
            else "No worker runs them: start one (trunkline worker APP) or `trunkline up`.",
        )
    else:
        yield Finding("duties", "ok", "all on time")
    if disabled := [name for name, is_enabled in enabled.items() if not is_enabled]:
        yield Finding(
            "disabled duties",
            "warn",
            ", ".join(disabled),
            f"Enable it with: trunkline duties enable {disabled[0]}",
        )


def _finding(check: HealthCheck) -> Finding:
    if (explain := _EXPLAINED.get(check.check)) is not None:
        return explain(check)
    if check.ok:
        return Finding(check.check, "ok", _GOOD.get(check.check, "none"))
    if (problem := _PROBLEMS.get(check.check)) is not None:
        return problem(check)
    return Finding(check.check, "fail", str(dict(check.detail or {})))


def _deferred(check: HealthCheck) -> Finding:
    if not check.ok:
        return Finding(
            "deferred work",
            "warn",
            f"{_jobs(check, 'jobs')} deferred too often or for too long",
            "See them with: trunkline db psql -c 'select * from trunkline.deferred_jobs()'",
        )
    bounded = "counted_up_to" in (check.detail or {})
    some = " among those deferred the longest" if bounded else ""
    return Finding("deferred work", "ok", f"none{some}")


def _set_aside(check: HealthCheck) -> Finding:
    if check.ok:
        message = "none"
        if (check.detail or {}).get("jobs"):
            message = f"{_jobs(check, 'jobs')}; see: trunkline limits list"
        return Finding("set aside", "ok", message)
    return Finding(
        "set aside",
        "warn",
        f"{_jobs(check, 'overdue')} set aside for too long, because they cost more than their "
        "limit can ever allow",
        "Find the limits with: trunkline limits list; raise them, or cancel the jobs.",
    )


def _stale(check: HealthCheck) -> Finding:
    return Finding(
        "stale work",
        "fail",
        f"{_jobs(check, 'jobs')} sent no heartbeat for twice their lease and were not recovered",
        "The duty reclaim does not run. Run it with: trunkline duties run reclaim",
    )


def _claims(_check: HealthCheck) -> Finding:
    return Finding(
        "claims",
        "warn",
        "switched off for all workers",
        "Switch them on with: trunkline settings reset claims_enabled",
    )


def _partitions(check: HealthCheck) -> Finding:
    used = ", ".join(name for name, in_use in (check.detail or {}).items() if in_use)
    return Finding(
        "default partitions",
        "warn",
        f"rows of {used} are in no day's partition",
        "Create partitions with: trunkline duties run maintain_partitions",
    )


def _breakers(check: HealthCheck) -> Finding:
    names = [str(name) for name in (check.detail or {}).get("open", [])]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Finding(
        "breakers",
        "warn",
        f"not closed: {', '.join(names[:_SHOWN])}{more}",
        "Jobs that wait for them are tried one at a time; see: trunkline breakers list",
    )


def _artifacts(check: HealthCheck) -> Finding:
    detail = check.detail or {}
    missing, stuck = int(detail.get("missing", 0)), int(detail.get("not_removed", 0))
    if missing:
        return Finding(
            "artifacts",
            "fail",
            f"{count(missing, 'artifact')} without a file in the store",
            "Restore them from a backup, or delete the artifacts: trunkline artifacts list",
        )
    return Finding(
        "artifacts",
        "warn",
        f"{count(stuck, 'file')} could not be deleted from the store",
        "See why with: trunkline store removals",
    )


def _jobs(check: HealthCheck, key: str) -> str:
    """Return a number of jobs; `or more` if it has reached the bound up to which they count."""
    detail = check.detail or {}
    number, bound = int(detail.get(key, 0)), detail.get("counted_up_to")
    return count(number, "job") + (" or more" if bound is not None and number >= bound else "")


# These have a message also when all is well.
_EXPLAINED: Final = {"deferred work": _deferred, "set aside": _set_aside}
_PROBLEMS: Final = {
    "artifacts": _artifacts,
    "breakers": _breakers,
    "claims": _claims,
    "default partitions": _partitions,
    "stale work": _stale,
}
