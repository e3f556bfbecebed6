"""Results on disk, one JSON object per line, so that an interrupted run can continue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

__all__ = ["NOTICED", "OUTCOMES", "Result", "State"]

# In the order of the table. Only the first four count for the score.
OUTCOMES = ("noticed", "timeout", "survived", "chance", "equivalent", "invalid")
NOTICED = frozenset({"noticed", "timeout"})


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one mutation, and the hashes of the sources and tests."""

    key: str
    outcome: str
    path: str
    line: int
    kind: str
    scope: str
    before: str
    after: str
    # The test that detected it; for "chance", tests that failed once but not again.
    test: str = ""
    reason: str = ""
    tests: int = 0
    seconds: float = 0.0
    sources: str = ""
    suite: str = ""


class State:
    """An append-only file. Later lines replace earlier ones; an incomplete last line is ignored."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()

    def results(self, sources: str, suite: str) -> dict[str, Result]:
        """Results that are still valid, by mutation.

        A result is valid for the same sources. If tests change, a survivor is tried again, but a
        detected mutation is not.
        """
        found = {}
        for record in self._records("result"):
            result = Result(**record)
            same = result.sources == sources and (
                result.suite == suite or result.outcome in NOTICED | {"invalid"}
            )
            if same:
                found[result.key] = result
            else:
                found.pop(result.key, None)
        return found

    def add(self, result: Result) -> None:
        self._append("result", asdict(result))

    def green(self, tree: str) -> set[str]:
        """Test files, or single tests, that passed on the unmutated tree."""
        return {
            name
            for record in self._records("green")
            if record["tree"] == tree
            for name in record["tests"]
        }

    def add_green(self, tree: str, tests: list[str]) -> None:
        self._append("green", {"tree": tree, "tests": tests})

    def _records(self, kind: str) -> Iterator[dict[str, Any]]:
        if not self._file.exists():
            return
        for line in self._file.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if record.get("record") == kind:
                del record["record"]
                yield record

    def _append(self, kind: str, fields: dict[str, Any]) -> None:
        line = json.dumps({"record": kind, **fields})
        with self._lock:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            # A run that was killed during a write leaves an incomplete line.
            torn = self._file.exists() and not self._file.read_bytes().endswith(b"\n")
            with self._file.open("a", encoding="utf-8") as file:
                file.write("\n" * torn + line + "\n")
