"""How limits look: a line of the list, and all parts of a limit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.text import Text

from trunkline.cli.gauges import bar, gauge, percent, quantity
from trunkline.cli.output import age, amount, capped, clean, count, moment, relative
from trunkline.cli.tables import Column, facts
from trunkline.model import BucketStatus, LimitStatus

__all__ = ["columns", "parts_of", "with_key"]

# The fields for what is used and what is allowed, and the length of the window.
_WINDOWS: Final = (
    ("requests_of_minute", "requests_per_minute", "a minute"),
    ("requests_of_hour", "requests_per_hour", "an hour"),
    ("tokens_of_minute", "tokens_per_minute", "a minute"),
    ("tokens_of_hour", "tokens_per_hour", "an hour"),
)

# How many tasks are named.
_TASKS: Final = 3


def columns(title: str, now: datetime, out: Console) -> list[Column[Any]]:
    """Return the columns for a list of limits, or of the keys of one limit."""

    def used(title: str, taken: str, allowed: str, rank: int) -> Column[Any]:
        def text(row: LimitStatus) -> str:
            most = getattr(row, allowed)
            if most is None:
                # A share group counts running jobs without a bound.
                return amount(row.in_use) if taken == "in_use" and row.share_group else ""
            return f"{getattr(row, taken):,}/{_times(row)}{most:,}"

        def style(row: LimitStatus) -> str:
            most = getattr(row, allowed)
            return "yellow" if most is not None and getattr(row, taken) >= most * _keys(row) else ""

        return Column(title, text, style, right=True, rank=rank)

    def spent(row: LimitStatus) -> str:
        # Each key has its own: see trunkline quotas list.
        if row.quota is None or row.buckets > 1:
            return ""
        return percent(row.spent / row.quota) if row.quota else "none"

    return [
        Column(title, lambda row: row.name, elastic=True, least=20),
        *gauge("", lambda row: row.fullness, out, rank=2),
        used("RUNNING", "in_use", "concurrency", 1),
        used("REQ/MIN", "requests_of_minute", "requests_per_minute", 1),
        used("REQ/H", "requests_of_hour", "requests_per_hour", 5),
        used("TOKENS/MIN", "tokens_of_minute", "tokens_per_minute", 3),
        used("TOKENS/H", "tokens_of_hour", "tokens_per_hour", 6),
        Column("QUOTA", spent, right=True, rank=4),
        Column("WAITING", lambda row: capped(row.waiting, row.counted_up_to), right=True, rank=0),
        Column("", lambda row: _state(row, now), "red", rank=1, elastic=True),
    ]


def _state(row: LimitStatus, now: datetime) -> str:
    notes = []
    if row.status != "active":
        notes.append(_stopped(row))
    if row.paused_until is not None:
        notes.append(f"paused for {age(row.paused_until - now)}")
    if row.set_aside:
        notes.append(f"{capped(row.set_aside, row.counted_up_to)} set aside")
    return "; ".join(notes)


def with_key(limit: LimitStatus, bucket: BucketStatus) -> LimitStatus:
    """Return a key as a row of the list, with the bounds of its limit."""
    known = {name: getattr(bucket, name) for name in bucket._fields if name in limit._fields}
    row = limit._replace(**known | {"buckets": 1, "spent": bucket.spent or 0})
    shares = [
        getattr(row, taken) / most
        for taken, allowed in (("in_use", "concurrency"), *(window[:2] for window in _WINDOWS))
        if (most := getattr(row, allowed))
    ]
    if row.quota and row.quota_buffer:
        shares.append(row.spent / float(row.quota * row.quota_buffer))
    return row._replace(fullness=max(shares, default=None))


def parts_of(
    limit: LimitStatus, buckets: Sequence[BucketStatus], now: datetime, out: Console
) -> RenderableType:
    """Return all parts of a limit in words."""
    fill = None
    if out.is_terminal and limit.fullness is not None:
        fill = bar(float(limit.fullness), 40, plain=out.options.ascii_only)
    return facts(
        [
            ("limit", clean(limit.name)),
            ("status", _status(limit)),
            ("", fill),
            ("running", _of(limit, "in_use", "concurrency", "at once")),
            ("requests", _windows(limit, 0, 2)),
            ("tokens", _windows(limit, 2, 4)),
            ("quota", _quota(limit)),
            ("waiting", _waiting(limit)),
            ("set aside", _set_aside(limit)),
            ("paused", _paused(buckets, now)),
            ("refused", _refused(limit, now)),
            ("late", _late(limit)),
            ("breaker", _breaker(limit, buckets)),
            ("pressure", _pressure(limit)),
            ("depth", _depth(limit)),
            ("share group", _share_group(limit)),
            ("changed", f"{relative(limit.updated_at, now)} by {clean(limit.updated_by)}"),
        ]
    )


def _waiting(limit: LimitStatus) -> str:
    if limit.waiting >= limit.counted_up_to:
        return f"{capped(limit.waiting, limit.counted_up_to)} jobs"
    return count(limit.waiting, "job")


def _keys(limit: LimitStatus) -> int:
    return max(limit.buckets, 1)


def _times(limit: LimitStatus) -> str:
    """Return a factor for the bound, because each key has the whole of it."""
    return "" if limit.buckets <= 1 else f"{limit.buckets:,}x"


def _status(limit: LimitStatus) -> Text:
    if limit.status == "active":
        return Text("active", style="green")
    return Text(_stopped(limit), style="red")


def _stopped(limit: LimitStatus) -> str:
    # An operator pauses a limit with `trunkline limits pause`; the engine calls that maintenance.
    status = "paused" if limit.status == "maintenance" else limit.status
    return f"{status}: {clean(limit.reason)}" if limit.reason else status


def _of(limit: LimitStatus, taken: str, allowed: str, words: str) -> str:
    most, used = getattr(limit, allowed), getattr(limit, taken)
    if most is None:
        return f"{used:,} at once" if taken == "in_use" and limit.share_group else ""
    if limit.buckets > 1:
        return f"{used:,} over {limit.buckets:,} keys, {most:,} {words} each"
    return f"{used:,} of {most:,} {words}"


def _windows(limit: LimitStatus, first: int, last: int) -> str:
    texts = [_of(limit, *window) for window in _WINDOWS[first:last]]
    return ", ".join(text for text in texts if text)


def _quota(limit: LimitStatus) -> str:
    if limit.quota is None or limit.quota_unit is None:
        return ""
    unit = "" if limit.quota_unit == "bytes" else f" {clean(limit.quota_unit)}"
    length = f"a {limit.quota_period}" if limit.quota_period else f"in {age(limit.quota_window)}"
    spent = quantity(limit.spent, limit.quota_unit, limit.quota)
    whole = f"{quantity(limit.quota, limit.quota_unit, limit.quota)}{unit} {length}"
    if limit.buckets > 1:
        return f"{spent} over {limit.buckets:,} keys, {whole} each"
    return f"{spent} of {whole}"


def _set_aside(limit: LimitStatus) -> Text | None:
    if not limit.set_aside:
        return None
    verb = "costs" if limit.set_aside == 1 else "cost"
    jobs = "job" if limit.set_aside == 1 else "jobs"
    is_quota = all(getattr(limit, allowed) is None for _, allowed, _ in _WINDOWS)
    command = f"trunkline {'quotas' if is_quota else 'limits'} set '{clean(limit.name)}' …"
    return Text(
        f"{capped(limit.set_aside, limit.counted_up_to)} {jobs}, which {verb} more than the limit"
        f" can ever allow; raise it with: {command}, or cancel the {jobs}",
        style="yellow",
    )


def _paused(buckets: Sequence[BucketStatus], now: datetime) -> Text | None:
    paused = [bucket for bucket in buckets if bucket.paused_until is not None]
    if not paused:
        return None
    last = max(paused, key=lambda bucket: bucket.paused_until or now)
    which = f"{count(len(paused), 'key')}, " if len(paused) > 1 else ""
    why = f": {clean(last.pause_reason)}" if last.pause_reason else ""
    return Text(f"{which}until {moment(last.paused_until, now)}{why}", style="red")


def _refused(limit: LimitStatus, now: datetime) -> str:
    if not limit.refused:
        return ""
    return f"{count(limit.refused, 'call')}, last {relative(limit.refused_at, now)}"


def _late(limit: LimitStatus) -> Text | None:
    if not limit.late:
        return None
    names = ", ".join(map(clean, limit.late_tasks[:_TASKS]))
    more = f" and {len(limit.late_tasks) - _TASKS} more" if len(limit.late_tasks) > _TASKS else ""
    return Text(
        f"{count(limit.late, 'attempt')} in 7 days, of {names}{more}, ended long after the charge"
        " without ctx.http, ctx.grant or ctx.settle; a late call may have exceeded the limit",
        style="yellow",
    )


def _breaker(limit: LimitStatus, buckets: Sequence[BucketStatus]) -> str:
    if limit.breaker_failures is None or limit.breaker_share is None:
        return ""
    stopped = sum(bucket.breaker in {"open", "half_open"} for bucket in buckets)
    state = "closed" if not stopped else "open" if limit.buckets <= 1 else f"{stopped:,} not closed"
    return (
        f"{state}; opens at {count(limit.breaker_failures, 'failure')} and"
        f" {limit.breaker_share:.0%} within {age(limit.breaker_window)},"
        f" tries again after {age(limit.breaker_probe_after)}"
    )


def _pressure(limit: LimitStatus) -> str:
    if limit.backpressure_threshold is None:
        return ""
    return (
        f"new jobs are deferred by {age(limit.backpressure_delay) or '0s'}"
        f" above {limit.backpressure_threshold:.0%} of the minute"
    )


def _depth(limit: LimitStatus) -> str:
    if limit.depth_limit is None:
        return ""
    later = "refused" if limit.depth_refuses else f"deferred by {age(limit.backpressure_delay)}"
    verb = "waits" if limit.depth_limit == 1 else "wait"
    return f"up to {count(limit.depth_limit, 'job')} {verb}, more are {later}"


def _share_group(limit: LimitStatus) -> str:
    if limit.share_group is None:
        return ""
    cap = f", at most {limit.share_cap:,} at once while others wait" if limit.share_cap else ""
    return f"{clean(limit.share_group)}, weight {limit.weight or 1}{cap}"
