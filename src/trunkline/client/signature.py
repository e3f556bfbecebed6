"""The schema of a payload, which is the signature of its handler."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from trunkline.client.fingerprint import fingerprint
from trunkline.client.references import Reference, escaped, meaning
from trunkline.errors import (
    InvalidTask,
    PayloadMismatch,
    ResultMismatch,
    ResultNotStorable,
    WrongResult,
)
from trunkline.handler import Context, Results, SyncContext
from trunkline.handler.results import item_type
from trunkline.model import Outcome
from trunkline.model.codec import Codec, encode, is_pydantic, misplaced_field

__all__ = ["Schema"]

# How many characters of a wrong result the error keeps.
_LONGEST_VALUE = 4000

_CONTEXTS = (Context, SyncContext)
# Types of a parameter that no list of results fits.
_NO_LISTS = frozenset({int, float, str, bool, bytes, dict, types.NoneType})
_UNSUPPORTED: Mapping[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*{}: name each parameter instead",
    inspect.Parameter.VAR_KEYWORD: "**{}: name each parameter, or take one dictionary",
}


class Schema:
    """Turns the arguments of a call into JSON, and JSON into the arguments of the handler."""

    def __init__(
        self,
        task: str,
        handler: Callable[..., Any],
        cost: Callable[..., Mapping[str, int]] | None = None,
    ) -> None:
        self.task = task
        self._cost = cost
        hints = _hints(task, handler)
        items = {name: item_type(kind) for name, kind in hints.items()}
        # In a payload, results are a list.
        lists = {name: types.GenericAlias(list, item) for name, item in items.items() if item}
        hints |= lists
        signature = _signature(task, handler)
        parameters = list(signature.parameters.values())
        kind = hints.get(parameters[0].name) if parameters else None
        self.takes_context = kind in _CONTEXTS
        if self.takes_context:
            _check_context(task, handler, kind)
            parameters = parameters[1:]
        for parameter in parameters:
            self._check(parameter, hints)
        self._signature = signature.replace(
            parameters=parameters, return_annotation=inspect.Signature.empty
        )
        self._names = tuple(parameter.name for parameter in parameters)
        self._kinds = {name: hints.get(name, Any) for name in self._names}
        # The parameters annotated Results[T], and how to read each T.
        self.items = {
            name: self._codec(items[name], "parameters")
            for name in self._names
            if items.get(name) is not None
        }
        self._payload = self._codec(_struct(task, parameters, hints), "parameters")
        self._result = self._result_codec(_without_outcomes(hints.get("return", Any)))
        # A handler that returns nothing may still set ctx.result.
        self._checks_result = self._result.kind not in {Any, None, types.NoneType}

    def _check(self, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
        problem = _UNSUPPORTED.get(parameter.kind)
        if problem is not None:
            raise InvalidTask(
                f"Handler of {self.task} takes {problem.format(parameter.name)}",
                hint="The parameters are the schema of the payload, so each needs a name.",
            )
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise InvalidTask(
                f"Parameter {parameter.name} of {self.task} is positional-only",
                hint="A payload has named fields: remove the / from the signature.",
            )
        kind = hints.get(parameter.name)
        if kind in _CONTEXTS:
            raise InvalidTask(
                f"Parameter {parameter.name} of {self.task} is a {kind.__name__} but not the first",
                hint=f"Put `ctx: {kind.__name__}` first.",
            )

    def _codec(self, kind: Any, what: str) -> Codec:
        hint = (
            "Use what JSON can hold: numbers, text, lists, dictionaries, dates, UUIDs, Decimal, "
            "enums, dataclasses, msgspec structs, TypedDicts or pydantic models."
        )
        try:
            codec = Codec(kind)
            unknown = codec.custom_types()
        except (TypeError, NameError) as error:
            raise InvalidTask(f"The {what} of {self.task}: {error}", hint=hint) from error
        if unknown:
            raise InvalidTask(
                f"The {what} of {self.task} have a type that cannot be read from JSON: "
                + ", ".join(sorted(kind.__qualname__ for kind in unknown)),
                hint=hint,
            )
        return codec

    def _result_codec(self, kind: Any) -> Codec:
        # A result may have any type that can be encoded. If that type cannot be read back, a client
        # that waits for the result receives plain JSON values.
        try:
            return self._codec(kind, "result")
        except InvalidTask:
            return Codec(Any)

    def encode(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, in_order: bool = False
    ) -> bytes:
        """Check the arguments of a call against the signature and return the payload."""
        # Reading the payload back finds every mistake. Binding has better messages, but takes four
        # times as long, so only positional arguments and mistakes are bound.
        arguments = self._bound(args, kwargs) if args else kwargs
        try:
            document = encode(arguments, in_order=in_order)
        except TypeError as error:
            raise PayloadMismatch(f"An argument of {self.task} is not JSON: {error}") from error
        try:
            self._decode(document)
        except PayloadMismatch:
            self._bound(args, kwargs)
            raise
        return document

    def has_references(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Whether an argument stands for a result of another step of a workflow."""
        return any(type(value) is Reference for value in (*args, *kwargs.values()))

    def encode_step(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[bytes, tuple[Reference, ...]]:
        """Return the payload of a step of a workflow, and the references in it."""
        arguments = self._bound(args, kwargs)
        payload: dict[str, Any] = {}
        references = []
        for name, value in arguments.items():
            if type(value) is Reference:
                self._check_reference(name, value)
                references.append(value)
                payload[name] = meaning(value).document
            else:
                payload[name] = msgspec.Raw(self._encode_field(name, value))
        return encode(payload), tuple(references)

    def _check_reference(self, name: str, reference: Reference) -> None:
        """Refuse results of many jobs where the handler takes something that is no list."""
        kind = typing.get_origin(self._kinds[name]) or self._kinds[name]
        if meaning(reference).kind == "results" and kind in _NO_LISTS:
            raise PayloadMismatch(
                f"{meaning(reference).text} are many, but argument {name} of {self.task} is "
                f"{kind.__name__}"
            )

    def _encode_field(self, name: str, value: Any) -> bytes:
        try:
            document = encode(value)
            Codec(self._kinds[name]).decode(document)
        except TypeError as error:
            raise PayloadMismatch(f"An argument of {self.task} is not JSON: {error}") from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise PayloadMismatch(f"Argument {name} does not fit {self.task}: {error}") from error
        return escaped(document)

    @property
    def has_cost(self) -> bool:
        """Whether a function computes what each job takes of its limits."""
        return self._cost is not None

    def cost(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, int] | None:
        """Return what a job with these arguments takes of its limits, if a function computes it."""
        if self._cost is None:
            return None
        return self._cost(**self.with_defaults(self._bound(args, kwargs)))

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise PayloadMismatch(f"{self.task}{self._signature}: {error}") from error

    def decode(self, document: str | bytes) -> dict[str, Any]:
        """Return the arguments for the handler, without those that are left to its defaults."""
        if not self._names and document == "{}":
            return {}
        try:
            decoded = self._decode(document)
        except PayloadMismatch as error:
            error.field = self._misplaced_field(document, error)
            raise
        arguments = {}
        for name in self._names:
            value = getattr(decoded, name)
            if value is not msgspec.UNSET:
                arguments[name] = value
        if self.items:
            for name in self.items.keys() & arguments.keys():
                arguments[name] = Results(arguments[name])
        return arguments

    def _decode(self, document: str | bytes) -> Any:
        try:
            return self._payload.decode(document)
        except (msgspec.MsgspecError, ValueError) as error:
            raise PayloadMismatch(f"The payload does not fit {self.task}: {error}") from error

    def _misplaced_field(self, document: str | bytes, mismatch: PayloadMismatch) -> str | None:
        """Return the field that other code added or removed, or None if a type is wrong too."""
        cause = mismatch.__cause__
        field = None if cause is None else misplaced_field(cause)
        return None if field is None or self.misfits(document) else field

    def misfits(self, document: str | bytes) -> list[str]:
        """Return the fields of a payload that have a wrong type, anywhere in them."""
        found = []
        for name, part in msgspec.json.decode(document, type=dict[str, msgspec.Raw]).items():
            if name in self._kinds:
                try:
                    Codec(self._kinds[name]).decode(bytes(part))
                except (msgspec.MsgspecError, ValueError) as error:
                    if misplaced_field(error) is None:
                        found.append(name)
        return found

    @cached_property
    def fingerprint(self) -> str:
        """A hash that differs between versions of a handler that take different payloads."""
        return fingerprint(self._payload.kind)

    @cached_property
    def signature(self) -> str:
        """The fingerprint of the payload and that of the result, with a colon between them."""
        return f"{self.fingerprint}:{fingerprint(self._result.kind)}"

    def encode_result(self, value: Any) -> str | None:
        """Return a result as JSON text, or None; refuse one that `result` could not read back.

        Otherwise the client that waits for it would fail, after the work was paid for.
        """
        try:
            document = None if value is None else encode(value)
        except TypeError as error:
            raise ResultNotStorable(
                f"The result of {self.task} cannot be stored: {error}"
            ) from error
        if self._checks_result:
            try:
                self._result.decode(b"null" if document is None else document)
            except Exception as error:
                # Validators of the user's types may raise anything.
                if not self._is_valid_model(value):
                    raise WrongResult(
                        f"The result of {self.task} does not match its annotation: {error}",
                        value=_cut(document),
                    ) from error
        return None if document is None else document.decode()

    def _is_valid_model(self, value: Any) -> bool:
        """Whether this is a valid instance of the annotated model whose JSON lacks some fields."""
        kinds = typing.get_args(self._result.kind) or (self._result.kind,)
        if not is_pydantic(type(value)) or type(value) not in kinds:
            return False
        try:
            type(value).model_validate(vars(value), by_name=True)
        except Exception:  # noqa: BLE001 - as above
            return False
        return True

    def result(self, value: Any) -> Any:
        """Return a stored result as the type in the handler's annotation."""
        try:
            return self._result.convert(value)
        except (msgspec.MsgspecError, ValueError) as error:
            raise ResultMismatch(f"The result does not fit {self.task}: {error}") from error

    def with_defaults(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return a payload with the handler's defaults for missing fields."""
        defaults = {
            name: parameter.default
            for name, parameter in self._signature.parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        return {**defaults, **payload}

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of the handler, without the context."""
        return self._names


def _struct(task: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> Any:
    fields: list[Any] = []
    for parameter in parameters:
        kind = hints.get(parameter.name, Any)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, kind))
        else:
            # Left unset, so that the handler's own default applies where it runs.
            fields.append((parameter.name, kind | msgspec.UnsetType, msgspec.UNSET))
    try:
        return msgspec.defstruct(
            "Payload", fields, forbid_unknown_fields=True, kw_only=True, gc=False
        )
    except (TypeError, ValueError) as error:
        raise InvalidTask(f"The parameters of {task} cannot form a schema: {error}") from error


def _without_outcomes(kind: Any) -> Any:
    """Return a type without outcomes: of `Receipt | Snooze` only Receipt is stored."""
    if typing.get_origin(kind) not in {typing.Union, types.UnionType}:
        return kind
    outcomes = typing.get_args(Outcome)
    parts = tuple(part for part in typing.get_args(kind) if part not in outcomes)
    return typing.Union[parts] if parts else None  # noqa: UP007 - the parts are not known here


def _cut(document: bytes | None) -> str:
    text = "null" if document is None else document.decode()
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _signature(task: str, handler: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(handler)
    except (TypeError, ValueError) as error:
        raise InvalidTask(
            f"The handler of {task} has no signature: {error}", hint="Write a `def` around it."
        ) from error


def _check_context(task: str, handler: Callable[..., Any], kind: Any) -> None:
    """Refuse a context of the other kind: its methods must be awaited, or cannot be."""
    asynchronous = inspect.iscoroutinefunction(handler)
    expected = Context if asynchronous else SyncContext
    if kind is not expected:
        raise InvalidTask(
            f"The handler of {task} is {'`async def`' if asynchronous else 'a plain function'} and "
            f"takes a {kind.__name__}",
            hint=f"Write `ctx: {expected.__name__}`.",
        )


def _hints(task: str, handler: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(handler, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidTask(
            f"An annotation of the handler of {task} cannot be resolved: {error}",
            hint="Import the type at run time, not only under TYPE_CHECKING.",
        ) from error
