"""Queues made of two files, with everything that can be wrong with one; no server is needed."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.place import Place
from bench.rivals.product import Contender, EnvironmentMissing, Product
from tests.bench.toy_program import numbers

__all__ = ["NOWHERE", "toy"]

NOWHERE = Place("", "")


class _Toy(Contender):
    """Jobs are lines of a file, their ends lines of another."""

    def __init__(self, how: str, folder: Path) -> None:
        program = [sys.executable, "-m", "tests.bench.toy_program"]
        super().__init__(
            key=how,
            name=how.title(),
            worker=[*program, "worker", how, str(folder)],
            producer=[*program, "producer", how, str(folder)],
            environment={},
        )
        self._folder = folder

    def workers(self, processes: int) -> Sequence[Sequence[str]]:  # noqa: ARG002 - it has one
        return [self.worker]

    def is_empty(self) -> bool:
        # The worker ends jobs in order.
        return numbers(self._folder, "jobs")[-1:] == numbers(self._folder, "ends")[-1:]

    def ended(self) -> tuple[int, int] | None:
        ends = numbers(self._folder, "ends")
        return len(ends), len(set(ends))

    def forget(self) -> None:
        for name in ("jobs", "ends"):
            (self._folder / name).write_text("")

    def dead_tuples(self) -> int | None:
        return None

    def server_pids(self) -> list[int]:
        return []


def toy(how: str, folder: Path) -> Product:
    """A product that behaves in this way."""

    def prepare() -> None:
        if how == "missing":
            raise EnvironmentMissing("needs a moon: https://moon.example/install\nand a ladder")

    @contextmanager
    def opened(_: Place) -> Iterator[Contender]:
        if how == "closed":
            raise RuntimeError(f"no tables in {folder}/schema.sql")
        yield _Toy(how, folder)

    return Product(
        key=how,
        name=how.title(),
        language="Python",
        settings="a file",
        prepare=prepare,
        versions=lambda: {"toy": "1.0"},
        open=opened,
        pace=40,
    )
