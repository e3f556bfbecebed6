"""Generates docs/reference/settings.md and states.md from the rows that the migrations insert."""

from __future__ import annotations

from pathlib import Path

from tools.generate_docs import diagram, inserted, transitions
from tools.markdown import REFERENCE, cell, code, page, table

__all__ = ["generate"]

_STATES = {
    "blocked": "Waits for something other than time, such as a larger limit; no claim finds it.",
    "scheduled": "Waits for its time: a delay, a back-off, a snooze.",
    "ready": "Can be claimed now.",
    "running": "An attempt of a worker has the lease.",
    "completed": "Ended well; kept for the setting `finished_retention`.",
    "cancelled": "Ended because somebody asked for it; kept as long as completed ones.",
    "dead": "A dead letter, out of attempts or refused for good; a person replays or discards it.",
}
_SETTINGS = """
Rows in the database, the same for every client and worker, changed at run time with
[`set_setting`](sql.md#set_setting) or `trunkline settings set`. The view
[`settings`](sql.md#view-settings) shows the value in force and who changed it. A task's own policy
goes before a setting. Variables of the environment are on [another page](environment.md).
"""
_DUTIES = (
    "Periodic work of the engine; any worker runs it. [`health`](sql.md#health) "
    "reports those that are late, fail or are disabled. You can "
    "[add your own](../how-to/duties.md#add-your-own-duty)."
)
_TRANSITIONS = """
Every change of state is one call of a function; nothing else exists.
[The engine's README](../../src/trunkline/sql/README.md#states) numbers them and says what happens
in each.
"""


def generate() -> dict[Path, str | None]:
    """Return the pages and the texts they should have."""
    return {
        REFERENCE / "settings.md": _settings_page(),
        REFERENCE / "states.md": _states_page(),
    }


def _settings_page() -> str:
    rows = [
        [
            code(row["name"]),
            row["kind"],
            code(row["default_value"]),
            _range(row.get("minimum"), row.get("maximum")),
            cell(row["description"]),
        ]
        for row in sorted(inserted("settings"), key=lambda row: row["name"])
    ]
    duties = [
        [code(row["duty"]), row["every"], cell(row["description"])] for row in inserted("duties")
    ]
    return page(
        "Settings of the engine",
        _SETTINGS,
        table(["setting", "type", "default", "range", "what it does"], rows),
        "## Duties",
        _DUTIES,
        table(["duty", "every", "what it does"], duties),
    )


def _range(minimum: str | None, maximum: str | None) -> str:
    return f"{minimum} to {maximum}" if minimum and maximum else ""


def _states_page() -> str:
    known = {state for row in transitions() for state in row[:2]} - {"none"}
    if known != set(_STATES):
        raise LookupError(f"states without a description: {known ^ set(_STATES)}")
    changes = [[_state(one), _state(other), code(by)] for one, other, by in transitions()]
    return page(
        "States of a job",
        _TRANSITIONS,
        table(["state", "meaning"], [[code(state), text] for state, text in _STATES.items()]),
        diagram(),
        "## Legal transitions",
        table(["from", "to", "by"], changes),
    )


def _state(name: str) -> str:
    return "nothing" if name == "none" else code(name)
