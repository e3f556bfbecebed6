"""The three passes over a document: what is asked of a model, and what of its answer is taken.

Each pass has a form that the answer must have; what does not have it is not taken. A model that
answers nonsense may do better next time, so that is no fault of the document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from trunkline_profiles.clinical.handlers.problems import StageProblem

__all__ = ["PASSES", "Answered", "Entities", "Facts", "Narrative", "Pass", "answered", "as_text"]


class Entity(msgspec.Struct, frozen=True):
    """Something named in the document, and in which line."""

    kind: str
    text: str
    line: int


class Entities(msgspec.Struct, frozen=True):
    """What the first pass finds."""

    entities: tuple[Entity, ...]


class Fact(msgspec.Struct, frozen=True):
    """A clinical statement of the document."""

    kind: str
    name: str
    value: str
    unit: str | None = None


class Facts(msgspec.Struct, frozen=True):
    """What the second pass makes of the entities."""

    facts: tuple[Fact, ...]


class Narrative(msgspec.Struct, frozen=True):
    """What the third pass writes for people."""

    summary: str


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass: its instruction, and the form of its answer, whose name is that of the record."""

    record: str
    instruction: str
    form: type[Entities | Facts | Narrative]
    # Of which stage it reads the result.
    reads: str

    def request(self, model: str, text: str) -> dict[str, Any]:
        """The body of the call."""
        schema = msgspec.json.schema(self.form)
        return {
            "model": model,
            "temperature": 0,
            "messages": [
                {"role": "system", "content": self.instruction},
                {"role": "user", "content": text},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": self.record, "schema": schema},
            },
        }


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that has its form, and what it cost; None: the provider did not say."""

    value: Any
    tokens_used: int | None


PASSES: Final[Mapping[str, Pass]] = {
    "ai_queue_pass1": Pass(
        "entities",
        "List what the numbered lines of a medical document name: kind, text and line.",
        Entities,
        "fast_queue_spatial",
    ),
    "ai_queue_pass2": Pass(
        "facts",
        "Turn the entities of a medical document into clinical facts: kind, name, value and unit.",
        Facts,
        "ai_queue_pass1",
    ),
    "ai_queue_pass3": Pass(
        "narrative",
        "Write one sentence for the patient about what was found in the document.",
        Narrative,
        # Not of the second, which may be switched off.
        "ai_queue_pass1",
    ),
}


def as_text(left: Mapping[str, Any]) -> str:
    """What a stage left, as a model reads it: numbered lines of a layout, or JSON."""
    if "pages" not in left:
        return json.dumps(left)
    lines = [line["text"] for page in left["pages"] for line in page["lines"]]
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))


def answered(asked: Pass, body: Any) -> Answered:
    """Take an answer apart: the text of the model must have the form that was asked for."""
    try:
        content = body["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise StageProblem("The provider's answer has no message") from error
    try:
        value = msgspec.json.decode(str(content), type=asked.form)
    except msgspec.DecodeError as error:
        raise StageProblem(f"The model's answer is not what was asked for: {error}") from error
    return Answered(json.loads(msgspec.json.encode(value)), tokens_used(body))


def tokens_used(body: Any) -> int | None:
    """What the provider says the call took; None if it does not say so clearly."""
    try:
        found = body["usage"]["total_tokens"]
    except (KeyError, TypeError):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None
