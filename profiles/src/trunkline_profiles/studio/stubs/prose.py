"""A deterministic generator of chapters: the same charts give the same text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["PARAGRAPHS", "write"]

PARAGRAPHS: Final = 3

_OPENINGS: Final = (
    "Between {a} and {b} there is a quiet understanding",
    "{a} meets {b} where the road turns",
    "What {a} begins, {b} carries on",
    "Neither {a} nor {b} asks for permission",
)
_TURNS: Final = (
    "and the days give it a shape of their own",
    "although it takes both of them a long time to see it",
    "as long as nobody counts the favours",
    "which the people around them notice first",
)
_CLOSINGS: Final = (
    "Patience is the better part of it.",
    "Small agreements matter more than great plans here.",
    "They do well to laugh about it once a week.",
    "It repays those who listen twice.",
)


def write(request: Mapping[str, Any]) -> str:
    """The content of the model's answer: a JSON object with paragraphs."""
    instruction, charts = (str(message["content"]) for message in request["messages"])
    lines = charts.splitlines()
    names = list(dict.fromkeys(line.partition(",")[0] for line in lines)) or ["One", "the other"]
    draw = _draws(instruction + charts)
    paragraphs = []
    for number in range(PARAGRAPHS):
        opening = _OPENINGS[next(draw) % len(_OPENINGS)].format(a=names[0], b=names[-1])
        fact = lines[next(draw) % len(lines)] if lines else "no chart"
        paragraphs.append(
            f"{opening}, {_TURNS[next(draw) % len(_TURNS)]}. The chart says it in its own words:"
            f" {fact}. {_CLOSINGS[(next(draw) + number) % len(_CLOSINGS)]}"
        )
    return json.dumps({"paragraphs": paragraphs})


def _draws(seed: str) -> Iterator[int]:
    number = 0
    while True:
        yield from hashlib.sha256(f"{number}:{seed}".encode()).digest()
        number += 1
