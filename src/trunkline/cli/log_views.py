"""How lines of the operator log look."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from rich.console import Console

from trunkline.cli.output import age, count, moment
from trunkline.cli.tables import Column
from trunkline.model import LogEntry

__all__ = ["change_of", "columns"]

# Digits of a hash, enough to see whether two payloads differ.
_DIGITS: Final = 8
_HASH: Final = "payload_sha256"
# As much of a job id as is unique in practice: the milliseconds of its creation.
_OBJECT: Final = 14
# What a change needs to be of use: other columns make room for it.
_CHANGE_ROOM: Final = 30
_WIDE: Final = 140


def columns(now: datetime, out: Console) -> list[Column[LogEntry]]:
    """Return the columns of the operator log; a wide terminal and a file get more of them."""
    more: list[Column[LogEntry]] = [
        Column("TIME", lambda row: moment(row.at), "dim", rank=3),
        Column("LOGIN", lambda row: row.login, "dim", rank=4),
    ]
    return [
        Column("AGO", lambda row: age(now - row.at), right=True),
        Column("ACTOR", lambda row: row.actor, elastic=True),
        Column("ACTION", lambda row: row.action),
        Column("OBJECT", _object, elastic=True, least=_OBJECT),
        Column("CHANGE", change_of, rank=1, elastic=True, least=18, room=_CHANGE_ROOM),
        Column("REASON", lambda row: row.reason, "yellow", rank=1, elastic=True, least=12),
        Column("TENANT", lambda row: row.tenant, rank=2, elastic=True),
        *(more if out.width >= _WIDE else []),
    ]


def change_of(row: LogEntry) -> str:
    """Return what a line changed: fields from their old to their new value."""
    after = row.after or {}
    if "outcomes" in after:
        return f"{count(after['jobs'], 'job')}: {_value(after['outcomes'])}"
    if row.after is None:
        return "removed"
    before = row.before or {}
    # The reason has its own column.
    names = [
        name
        for name in sorted({**before, **after}, key=lambda name: _order(after.get(name)))
        if name != "reason" and before.get(name) != after.get(name)
    ]
    if row.before is None:
        # The parts of a new object that are off are left out.
        return ", ".join(f"{_label(name)}{_part(name, after)}" for name in names if after[name])
    return ", ".join(
        f"{_label(name)}{_part(name, before)} → {_part(name, after)}" for name in names
    )


def _order(value: Any) -> int:
    """Return the place among the fields: numbers, which are mostly what was set, come first."""
    if isinstance(value, bool) or value == "active":
        return 2
    return 0 if isinstance(value, int) else 1


def _label(name: str) -> str:
    if name == "value":
        # The only field of a setting.
        return ""
    return "payload " if name.startswith(_HASH) else f"{name} "


def _part(name: str, state: Mapping[str, Any]) -> str:
    value = state.get(name)
    return value[:_DIGITS] if value and name.startswith(_HASH) else _value(value)


def _value(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case Mapping():
            return ", ".join(f"{name} {_value(inner)}" for name, inner in value.items())
        case _:
            return json.dumps(value, ensure_ascii=False)


def _object(row: LogEntry) -> str:
    """Return the object's name; a bulk change has the filter of its jobs instead."""
    if row.object is not None:
        return row.object
    chosen = (row.before or {}).get("filter") or {}
    return " ".join(f"{name}={_value(value)}" for name, value in chosen.items()) or "all jobs"
