"""Generates docs/reference/settings.md and states.md from the rows that the migrations insert."""

from __future__ import annotations

from pathlib import Path

from tools.generate_docs import diagram, inserted, transitions
from tools.markdown import REFERENCE, cell, code, page, table

__all__ = ["generate"]

_STATES = {
    "blocked": "Waits for something other than time, such as a larger limit; no claim finds it.",
    "scheduled": "Waits for its due time: a delay, a back-off or a snooze.",
    "ready": "Can be claimed now.",
    "running": "An attempt of a worker has the lease.",
    "completed": "Completed; kept as long as the setting `finished_retention`.",
    "cancelled": "Cancelled or expired; kept as long as completed jobs.",
    "dead": "A dead letter: out of attempts, or not retryable. You can replay or discard it.",
}
_SETTINGS = """
Settings are rows in the database and apply to every client and worker. Change one at run time with
`trunkline settings set` or [`set_setting`](sql.md#set_setting). The view
[`settings`](sql.md#view-settings) shows the current values and which role changed them. A task's
own policy takes precedence over a setting. [Environment variables](environment.md) have a separate
page.
"""
_DUTIES = (
    "Duties are periodic work of the engine; any worker runs them. [`health`](sql.md#health) "
    "reports duties that are late, fail or are disabled. You can "
    "[add your own](../how-to/duties.md#add-your-own-duty)."
)
_TRANSITIONS = """
Every change of state is one function call. There are no other transitions.
[The engine's README](../../src/trunkline/sql/README.md#states) numbers them and describes what
happens in each.
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
