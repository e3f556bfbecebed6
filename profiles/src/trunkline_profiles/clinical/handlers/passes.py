"""The three passes over a document: the request to a model, and the parsing of its response.

Each pass has a schema, and a response that does not match it is refused. A model may respond better
next time, so a bad response does not count against the document.
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
    """Something that the document names, and its line."""

    kind: str
    text: str
    line: int


class Entities(msgspec.Struct, frozen=True):
    """The result of the first pass."""

    entities: tuple[Entity, ...]


class Fact(msgspec.Struct, frozen=True):
    """A clinical statement of the document."""

    kind: str
    name: str
    value: str
    unit: str | None = None


class Facts(msgspec.Struct, frozen=True):
    """The result of the second pass, derived from the entities."""

    facts: tuple[Fact, ...]


class Narrative(msgspec.Struct, frozen=True):
    """The result of the third pass, a text for people."""

    summary: str


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass: its instruction, and the schema of its response, which also names the record."""

    record: str
    instruction: str
    form: type[Entities | Facts | Narrative]
    # The stage whose result it reads.
    reads: str

    def request(self, model: str, text: str) -> dict[str, Any]:
        """The body of the request."""
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
    """A valid response and its tokens; None if the provider did not state them."""

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
        # Not the second stage, which may be switched off.
        "ai_queue_pass1",
    ),
}


def as_text(left: Mapping[str, Any]) -> str:
    """The result of a stage as text for the model: numbered lines of a layout, or JSON."""
    if "pages" not in left:
        return json.dumps(left)
    lines = [line["text"] for page in left["pages"] for line in page["lines"]]
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))


def answered(asked: Pass, body: Any) -> Answered:
    """Parse a response; the text of the model must match the schema."""
    try:
        content = body["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise StageProblem("The provider's response has no message") from error
    try:
        value = msgspec.json.decode(str(content), type=asked.form)
    except msgspec.DecodeError as error:
        raise StageProblem(f"The model's response does not match the schema: {error}") from error
    return Answered(json.loads(msgspec.json.encode(value)), tokens_used(body))


def tokens_used(body: Any) -> int | None:
    """The tokens that the provider reports for the call; None if it reports no valid number."""
    try:
        tokens = body["usage"]["total_tokens"]
    except (KeyError, TypeError):
        return None
    return (
        tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0 else None
    )
