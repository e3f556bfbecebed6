"""Enqueues jobs of one task, typed by its handler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

import msgspec

from trunkline.client._async.jobs import AsyncJobHandle
from trunkline.client.request import (
    PLAIN,
    STEP_OPTIONS,
    OptionArguments,
    Options,
    Request,
    StepRequest,
)
from trunkline.errors import PayloadMismatch

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient
    from trunkline.client.signature import Schema

__all__ = ["AsyncCalls"]

P = ParamSpec("P")
R = TypeVar("R")


class AsyncCalls(Generic[P, R]):
    """A task with options. P are the parameters of its handler, R is its result."""

    def __init__(self, client: AsyncClient, schema: Schema, options: Options) -> None:
        self._client = client
        self._schema = schema
        self._options = options

    def options(self, **options: Unpack[OptionArguments]) -> AsyncCalls[P, R]:
        """Return the same task with these options added to its own."""
        return AsyncCalls(self._client, self._schema, self._options.but(**options))

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request[R]:
        """Return a request for `enqueue_many`, which takes requests of several tasks."""
        schema = self._schema
        options = self._options
        if schema.has_cost and options.cost is None:
            options = options.but(cost=schema.cost(args, kwargs))
        try:
            # Sorted, so that a set has the same JSON in each process: requests are compared by it.
            payload = schema.encode(args, kwargs, in_order=True)
        except PayloadMismatch:
            # Results of other steps are rare, so that other requests do not pay for the check.
            if not schema.has_references(args, kwargs):
                raise
            payload, references = schema.encode_step(args, kwargs)
            options = STEP_OPTIONS if options is PLAIN else options
            return StepRequest(schema.task, payload, options, schema.result, references)
        return Request(schema.task, payload, options, schema.result)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle[R]:
        """Enqueue one job with the arguments of the handler, without the context."""
        return await self._client.enqueue_one(self.request(*args, **kwargs))

    async def enqueue_many(self, requests: Iterable[Request[R]]) -> list[AsyncJobHandle[R]]:
        """Enqueue many jobs at once, all or none. Options of this object apply to all of them."""
        if self._options is PLAIN:
            return await self._client.enqueue_many(requests)
        values = {name: getattr(self._options, name) for name in Options.__dataclass_fields__}
        shared = {name: value for name, value in values.items() if value is not None}
        merged: list[Request[Any]] = [
            msgspec.structs.replace(request, options=_merged(request.options, shared))
            for request in requests
        ]
        return await self._client.enqueue_many(merged)


def _merged(own: Options, shared: dict[str, Any]) -> Options:
    """Return a request's own options, completed with the shared ones."""
    return replace(
        own, **{name: value for name, value in shared.items() if getattr(own, name) is None}
    )
