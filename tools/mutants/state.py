"""Results on disk, one JSON object per line: an interrupted run goes on where it stopped."""

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
    """What became of one mutation, and the trees on which that was measured."""

    key: str
    outcome: str
    path: str
    line: int
    kind: str
    scope: str
    before: str
    after: str
    # The test that noticed it; for "chance", tests that failed once but not again.
    test: str = ""
    reason: str = ""
    tests: int = 0
    seconds: float = 0.0
    sources: str = ""
    suite: str = ""


class State:
    """An append-only file. Later lines replace earlier ones; a torn last line is ignored."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()

    def results(self, sources: str, suite: str) -> dict[str, Result]:
        """Results that still hold by mutation.

        They hold for the sources they were measured on. A survivor is tried again when tests
        changed; what was noticed is not.
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
            # A run that was killed while it wrote leaves half a line.
            torn = self._file.exists() and not self._file.read_bytes().endswith(b"\n")
            with self._file.open("a", encoding="utf-8") as file:
                file.write("\n" * torn + line + "\n")
