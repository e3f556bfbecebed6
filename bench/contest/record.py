"""The record of a contest: every figure of every product, as one JSON object."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["Board", "Record", "Result"]


@dataclass(frozen=True, slots=True)
class Result:
    """One measure of one product: a value for each repetition."""

    product: str
    measure: str
    unit: str
    values: tuple[float, ...]
    # How many jobs each value was measured with.
    jobs: int
    # Replaces the median of the repetitions, for example a percentile of all samples.
    of_all: float | None = None

    @property
    def median(self) -> float:
        """The figure: the median, or the value of all samples together."""
        return median(self.values) if self.of_all is None else self.of_all

    def as_json(self) -> dict[str, Any]:
        """The object of the record."""
        return {
            "product": self.product,
            "measure": self.measure,
            "unit": self.unit,
            "median": _rounded(self.median),
            "min": _rounded(min(self.values)),
            "max": _rounded(max(self.values)),
            "values": [_rounded(value) for value in self.values],
            "jobs": self.jobs,
        }


class Board:
    """Collects results during a run."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], Result] = {}

    def add(self, product: str, measure: str, unit: str, value: float, jobs: int) -> None:
        """Add the value of one more repetition."""
        before = self.get(product, measure)
        values = (*before.values, value) if before is not None else (value,)
        self.put(Result(product, measure, unit, values, jobs))

    def put(self, result: Result) -> None:
        """Add a result, or replace it."""
        self._results[result.product, result.measure] = result

    def get(self, product: str, measure: str) -> Result | None:
        """Return a result, or None."""
        return self._results.get((product, measure))

    @property
    def results(self) -> list[Result]:
        """All results, in the order of their first values."""
        return list(self._results.values())


@dataclass(frozen=True, slots=True)
class Record:
    """A complete run, as it is written and read."""

    date: str
    command: str
    seconds: int
    machine: Mapping[str, Any]
    # By product key: its name and language, installed versions, settings.
    products: Mapping[str, Mapping[str, str]]
    versions: Mapping[str, Mapping[str, str]]
    settings: Mapping[str, str]
    # Products that did not take part, and failures, with reasons.
    skipped: Mapping[str, str]
    errors: Mapping[str, list[str]]
    board: Board
    goals: list[Mapping[str, Any]] = field(default_factory=list)

    def name(self, product: str) -> str:
        """The displayed name of a product."""
        known = self.products.get(product)
        return known["name"] if known is not None else product

    def write(self, path: Path) -> None:
        """Write the record in a form that allows a line-by-line comparison of two runs."""
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {
            "date": self.date,
            "command": self.command,
            "seconds": self.seconds,
            "machine": self.machine,
            "products": self.products,
            "versions": self.versions,
            "settings": self.settings,
            "skipped": self.skipped,
            "errors": self.errors,
        }
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        lines += [
            f'"figures": {_listed([result.as_json() for result in self.board.results])}',
            f'"goals": {_listed(self.goals)}',
        ]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Read a record."""
        content = json.loads(path.read_text(encoding="utf-8"))
        board = Board()
        for each in content.pop("figures"):
            values = tuple(each["values"])
            of_all = each["median"] if each["median"] != _rounded(median(values)) else None
            board.put(
                Result(each["product"], each["measure"], each["unit"], values, each["jobs"], of_all)
            )
        return cls(board=board, **content)


def _rounded(value: float) -> float:
    # Four significant digits, or all digits before the point if there are more.
    return round(value, 1) if abs(value) >= 100 else float(f"{value:.4g}")


def _listed(objects: list[Any]) -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(each)}" for each in objects) + "\n]"
