"""The products of a run, the order of their turns, and their failures."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.contest.limits import TookTooLong, within
from bench.contest.record import Board
from bench.contest.sizes import ContestSizes
from bench.rivals.product import ROOT, Contender, Product

__all__ = ["Entrant", "Failed", "Scene", "first_line"]

_LONGEST_REASON = 300
_LONGEST_BEGINNING = 80


class Failed(Exception):
    """A product misbehaved; the message describes how."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """An opened product."""

    product: Product
    contender: Contender

    @property
    def key(self) -> str:
        return self.product.key


class Scene:
    """The argument of every measure of the contest."""

    def __init__(
        self, entrants: list[Entrant], folder: Path, sizes: ContestSizes, deadline: float
    ) -> None:
        self.entrants = entrants
        self.folder = folder
        self.sizes = sizes
        self.board = Board()
        self.errors: dict[str, list[str]] = defaultdict(list)
        # By product and timed span: a list for each repetition.
        self.samples: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
        # Whether turns were skipped because the run reached its time limit.
        self.cut_short = False
        self._deadline = deadline
        self._retired: set[tuple[str, str]] = set()

    def runners(self, measure: str) -> Iterator[Entrant]:
        """Yield the products that have not failed at this measure, while time is left."""
        for entrant in self.entrants:
            if time.monotonic() > self._deadline:
                self.cut_short = True
                return
            if not self.is_retired(entrant, measure):
                yield entrant

    def is_retired(self, entrant: Entrant, measure: str) -> bool:
        """Return whether it failed at this measure before."""
        return (entrant.key, measure) in self._retired

    @contextmanager
    def turn(self, entrant: Entrant, measure: str) -> Iterator[None]:
        """Run a step within its time; a failure is recorded and the run continues."""
        try:
            with within(self.sizes.turn_seconds, measure):
                yield
        except (Exception, TookTooLong) as error:  # noqa: BLE001 - any failure of a product
            # Not tried again: a product that hangs once would hang again while the others wait.
            self._retired.add((entrant.key, measure))
            reason = f"{measure}: {first_line(error)}"
            self.errors[entrant.key].append(reason)
            print(f"  {entrant.product.name} FAILED at {reason}", flush=True)


def first_line(error: BaseException) -> str:
    """Describe a failure in one line, without addresses and folders of this machine."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = re.sub(r"\b[a-z]+://\S+", "(address)", text.replace(f"{ROOT}/", ""))
    text = re.sub(r"(?<![\w.])/(?:[\w.@+-]+/)+", "", text)
    if len(text) <= _LONGEST_REASON:
        return text
    # A program's output has the command at the beginning and the reason of the failure at the end.
    return f"{text[:_LONGEST_BEGINNING]} … {text[_LONGEST_BEGINNING - _LONGEST_REASON :]}"
