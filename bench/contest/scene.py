"""Who takes part in a run, in which turns, and what became of them."""

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

__all__ = ["Entrant", "Failed", "Scene", "told"]

_LONGEST_REASON = 300
_LONGEST_BEGINNING = 80


class Failed(Exception):
    """A product did not do what it should; the message says what."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A product that was opened."""

    product: Product
    contender: Contender

    @property
    def key(self) -> str:
        return self.product.key


class Scene:
    """What a measure of the contest gets."""

    def __init__(
        self, entrants: list[Entrant], folder: Path, sizes: ContestSizes, deadline: float
    ) -> None:
        self.entrants = entrants
        self.folder = folder
        self.sizes = sizes
        self.board = Board()
        self.errors: dict[str, list[str]] = defaultdict(list)
        # By product and what was timed: a list for each repetition.
        self.samples: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
        # Whether turns were left out because the time of the run was used up.
        self.cut_short = False
        self._deadline = deadline
        self._retired: set[tuple[str, str]] = set()

    def runners(self, measure: str) -> Iterator[Entrant]:
        """Give everybody who has not failed at this measure, as long as there is time."""
        for entrant in self.entrants:
            if time.monotonic() > self._deadline:
                self.cut_short = True
                return
            if not self.is_retired(entrant, measure):
                yield entrant

    def is_retired(self, entrant: Entrant, measure: str) -> bool:
        """Tell whether it failed at this measure before."""
        return (entrant.key, measure) in self._retired

    @contextmanager
    def turn(self, entrant: Entrant, measure: str) -> Iterator[None]:
        """Let it do something within its time; if it fails, that is noted and the run goes on."""
        try:
            with within(self.sizes.turn_seconds, measure):
                yield
        except (Exception, TookTooLong) as error:  # noqa: BLE001 - whatever a product does wrong
            # Once is enough: what hangs would hang again, and everybody else waits.
            self._retired.add((entrant.key, measure))
            reason = f"{measure}: {told(error)}"
            self.errors[entrant.key].append(reason)
            print(f"  {entrant.product.name} FAILED at {reason}", flush=True)


def told(error: BaseException) -> str:
    """Say in a line what went wrong, without addresses and folders of this machine."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = re.sub(r"\b[a-z]+://\S+", "(address)", text.replace(f"{ROOT}/", ""))
    text = re.sub(r"(?<![\w.])/(?:[\w.@+-]+/)+", "", text)
    if len(text) <= _LONGEST_REASON:
        return text
    # What was tried is at the beginning, and why it ended at the end of what a program said.
    return f"{text[:_LONGEST_BEGINNING]} … {text[_LONGEST_BEGINNING - _LONGEST_REASON :]}"
