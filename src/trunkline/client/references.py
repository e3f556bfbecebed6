"""Values that stand for results of steps while a workflow is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, NoReturn

import msgspec

from trunkline.errors import InvalidWorkflow

__all__ = ["Meaning", "Reference", "escaped", "meaning"]

# In a workflow, an object with one of these keys, as a field of a payload, is a reference.
_KEYS: Final = frozenset({"$result", "$results", "$item", "$value"})


class Meaning(NamedTuple):
    """What a reference stands for. `owner` is the graph, so that no other one can use it."""

    kind: Literal["result", "results", "item", "workflow"]
    owner: object
    step: str | None = None

    @property
    def text(self) -> str:
        """How messages call the value."""
        match self.kind:
            case "item":
                return "The item of a map"
            case "workflow":
                return "The end of a workflow"
            case kind:
                return f"The {kind} of step {self.step}"

    @property
    def document(self) -> Mapping[str, Any]:
        """The reference in a payload."""
        return {f"${self.kind}": True if self.step is None else self.step}


class Reference:
    """Stands for a value that exists only when the workflow runs. It can only be passed on.

    The type checker sees the type of that value, so every use that it would accept and that cannot
    work has to raise here.
    """

    __slots__ = ("_meaning",)

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning

    def __repr__(self) -> str:
        return f"<{self._meaning.text.lower()}>"

    def __trunkline_json__(self) -> NoReturn:
        raise TypeError(f"{self!r} stands for a value that only a step of a workflow can use")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            # Libraries probe for protocols.
            raise AttributeError(name)
        raise _unknown(self)


def _unknown(reference: Reference) -> InvalidWorkflow:
    return InvalidWorkflow(
        f"{meaning(reference).text} is not known before the workflow runs",
        hint="Pass it as a whole argument: task.request(text=step.result). Use parts of it in a "
        "task of your own. If a cost depends on it, pass task.options(cost=…).",
    )


def _refuse(reference: Reference, *_: object) -> NoReturn:
    raise _unknown(reference)


for _name in (
    *("bool", "str", "format", "int", "float", "index", "len", "iter", "aiter", "reversed"),
    *("getitem", "contains", "call", "eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "round"),
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rand", "ror", "rxor"),
):
    setattr(Reference, f"__{_name}__", _refuse)
Reference.__hash__ = object.__hash__  # type: ignore[method-assign]


def meaning(reference: Reference) -> Meaning:
    """Return what a reference stands for."""
    found: Meaning = object.__getattribute__(reference, "_meaning")
    return found


def escaped(document: bytes) -> bytes:
    """Return the JSON of an argument as a workflow stores it, so that it is no reference."""
    if not document.startswith(b"{") or b'"$' not in document:
        return document
    if _KEYS.isdisjoint(msgspec.json.decode(document)):
        return document
    return b'{"$value":' + document + b"}"
