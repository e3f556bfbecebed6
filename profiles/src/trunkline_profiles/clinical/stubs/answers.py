"""The responses of the model's stub, which extracts by rules what a real model extracts by reading.

So a test can follow a value from the scanned page to the clinical record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["write"]

_LINE: Final = re.compile(r"(?P<number>\d+): (?P<name>[^:]+): *(?P<value>.+)")
_AMOUNT: Final = re.compile(r"(?P<value>[\d.]+) (?P<unit>\S+)")
_KINDS: Final = {
    "haemoglobin": "observation",
    "glucose": "observation",
    "creatinine": "observation",
    "medication": "medication",
    "date": "date",
}


def write(request: Mapping[str, Any]) -> str:
    """The text of the response in the requested schema; without a schema, the text it read."""
    form = (request.get("response_format") or {}).get("json_schema") or {}
    text = str(request["messages"][-1]["content"])
    return json.dumps(_ANSWERS.get(form.get("name"), _echo)(text))


def _entities(text: str) -> dict[str, Any]:
    entities = []
    for match in map(_LINE.fullmatch, text.splitlines()):
        if match:
            kind = _KINDS.get(match["name"].lower(), "text")
            said = f"{match['name']}: {match['value']}"
            entities.append({"kind": kind, "text": said, "line": int(match["number"])})
    return {"entities": entities}


def _facts(text: str) -> dict[str, Any]:
    facts = []
    for entity in json.loads(text)["entities"]:
        name, _, said = entity["text"].partition(": ")
        amount = _AMOUNT.fullmatch(said)
        fact = {"kind": entity["kind"], "name": name, "value": said, "unit": None}
        facts.append(fact | (amount.groupdict() if amount else {}))
    return {"facts": [fact for fact in facts if fact["kind"] != "text"]}


def _narrative(text: str) -> dict[str, Any]:
    named = [entity["text"] for entity in json.loads(text)["entities"]]
    return {"summary": f"The document says {len(named)} things: {'; '.join(named)}."}


def _echo(text: str) -> dict[str, Any]:
    return {"read": text[:200]}


_ANSWERS: Final[Mapping[Any, Callable[[str], dict[str, Any]]]] = {
    "entities": _entities,
    "facts": _facts,
    "narrative": _narrative,
}
