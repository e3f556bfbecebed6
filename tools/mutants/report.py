"""The result of a run as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tools.mutants.state import NOTICED, OUTCOMES, Result

__all__ = ["score", "short", "summary", "table"]


def score(results: Sequence[Result]) -> float | None:
    """The share of detected mutations; equivalent and invalid ones do not count."""
    counts = Counter(result.outcome for result in results)
    noticed = sum(counts[outcome] for outcome in NOTICED)
    total = noticed + counts["survived"] + counts["chance"]
    return round(noticed / total, 3) if total else None


def table(results: Sequence[Result], groups: dict[str, str]) -> str:
    """One line per domain and the total, then every mutation that no test detected."""
    lines = [_row("domain", [*OUTCOMES, "score"])]
    for domain in sorted(set(groups.values())):
        chosen = [result for result in results if groups.get(result.key) == domain]
        if chosen:
            lines.append(_row(domain, _cells(chosen)))
    lines.append(_row("all", _cells(results)))
    for result in results:
        if result.outcome in {"survived", "chance"}:
            lines += ["", *_described(result)]
    return "\n".join(lines)


def summary(results: Sequence[Result], **facts: Any) -> dict[str, Any]:
    """The complete result as one JSON object."""
    counts = Counter(result.outcome for result in results)
    return {
        **facts,
        **{outcome: counts[outcome] for outcome in OUTCOMES},
        "score": score(results),
        "results": [asdict(result) for result in results],
    }


def short(facts: dict[str, Any]) -> str:
    """The summary without the single results, as one line."""
    return json.dumps({name: value for name, value in facts.items() if name != "results"})


def _cells(results: Sequence[Result]) -> list[str]:
    counts = Counter(result.outcome for result in results)
    share = score(results)
    return [
        *(str(counts[name] or "") for name in OUTCOMES),
        "" if share is None else f"{share:.2f}",
    ]


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:12}" + "".join(f"{cell:>12}" for cell in cells)


def _described(result: Result) -> list[str]:
    chance = f" (failed once, not again: {result.test})" if result.outcome == "chance" else ""
    return [
        f"{result.outcome}: {result.path}:{result.line} {result.scope} [{result.kind}] {result.key}"
        + chance,
        f"  - {result.before}",
        f"  + {result.after}",
    ]
