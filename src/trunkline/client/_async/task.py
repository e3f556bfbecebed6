"""Enqueuing calls of one task, with the types of its handler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

import msgspec

from trunkline.client._async.jobs import AsyncJobHandle
from trunkline.client.request import PLAIN, OptionArguments, Options, Request

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient
    from trunkline.client.signature import Schema

__all__ = ["AsyncCalls"]

P = ParamSpec("P")
R = TypeVar("R")


class AsyncCalls(Generic[P, R]):
    """A task with options: what can be enqueued. P are the parameters of the handler."""

    def __init__(self, client: AsyncClient, schema: Schema, options: Options) -> None:
        self._client = client
        self._schema = schema
        self._options = options

    def options(self, **options: Unpack[OptionArguments]) -> AsyncCalls[P, R]:
        """The same task with these options on top of those it has."""
        return AsyncCalls(self._client, self._schema, self._options.but(**options))

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request[R]:
        """A call that can be passed to `enqueue_many`, alone or among those of other tasks."""
        schema = self._schema
        options = self._options
        if schema.has_cost and options.cost is None:
            options = options.but(cost=schema.cost(args, kwargs))
        payload = schema.encode(args, kwargs, in_order=options.idempotency_key is not None)
        return Request(schema.task, payload, options, schema.result)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle[R]:
        """Enqueue one job; the arguments are those of the handler, without the context."""
        return await self._client.enqueue_one(self.request(*args, **kwargs))

    async def enqueue_many(self, requests: Iterable[Request[R]]) -> list[AsyncJobHandle[R]]:
        """Enqueue many jobs at once, all or none; options of this object are for all of them."""
        if self._options is PLAIN:
            return await self._client.enqueue_many(requests)
        shared = {name: value for name, value in self._given().items() if value is not None}
        wanted: list[Request[Any]] = [
            msgspec.structs.replace(request, options=_merged(request.options, shared))
            for request in requests
        ]
        return await self._client.enqueue_many(wanted)

    def _given(self) -> dict[str, Any]:
        return {name: getattr(self._options, name) for name in Options.__dataclass_fields__}


def _merged(own: Options, shared: dict[str, Any]) -> Options:
    """What a request says itself goes before what is said for all."""
    return replace(
        own, **{name: value for name, value in shared.items() if getattr(own, name) is None}
    )
