"""Calls to providers: over connections that are kept, within limits, settled with what arrived."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from trunkline.client.flow import Grant, Http, HttpCall
from trunkline.client.http import ratelimit
from trunkline.client.http.deadline import Deadline
from trunkline.client.http.incoming import Incoming, MalformedResponse
from trunkline.client.http.outgoing import Outgoing, Target
from trunkline.client.http.ratelimit import Observed
from trunkline.client.http.response import Response
from trunkline.client.http.wires import AsyncWire
from trunkline.errors import HttpFailed, HttpTimeout, RateLimited

if TYPE_CHECKING:
    from trunkline.client._async.flow import AsyncFlow

__all__ = ["AsyncConnections", "AsyncHttp"]

# An answer is held in memory.
_LARGEST: Final = 64 * 2**20
# Servers close what is idle for longer; asking just then would fail.
_KEPT: Final = 15.0
_MOST_KEPT: Final = 20
# How long a limit is held where a provider refuses and does not say until when.
_UNSAID: Final = 5.0
_SHORTEST: Final = 1.0

_log = logging.getLogger("trunkline.http")


class AsyncConnections:
    """Connections that wait for another request, by where they lead to."""

    def __init__(self) -> None:
        self._idle: dict[Target, list[tuple[AsyncWire, float]]] = {}

    def close(self) -> None:
        """Let all of them go."""
        idle, self._idle = self._idle, {}
        for wires in idle.values():
            for wire, _ in wires:
                wire.close()

    async def exchange(self, outgoing: Outgoing, deadline: Deadline) -> Incoming:
        """Send a request and take its answer in."""
        kept = self._take(outgoing.target)
        if kept is not None:
            incoming = Incoming(outgoing.method, _LARGEST)
            try:
                return await self._over(kept, outgoing, incoming, deadline)
            except TimeoutError:
                raise
            except (OSError, MalformedResponse):
                # The server closed it just now. Whether it read the request, nobody knows.
                if incoming.wire_bytes or not outgoing.repeatable:
                    raise
        wire = await AsyncWire.open(outgoing.target, deadline)
        return await self._over(wire, outgoing, Incoming(outgoing.method, _LARGEST), deadline)

    async def _over(
        self, wire: AsyncWire, outgoing: Outgoing, incoming: Incoming, deadline: Deadline
    ) -> Incoming:
        try:
            await wire.send(outgoing.data, deadline)
            while not incoming.done:
                incoming.feed(await wire.receive(deadline))
        except (OSError, MalformedResponse) as error:
            # For who has to account for what arrived.
            error.received = incoming.wire_bytes  # type: ignore[union-attr]
            raise
        finally:
            if incoming.keeps_open:
                self._keep(outgoing.target, wire)
            else:
                wire.close()
        return incoming

    def _take(self, target: Target) -> AsyncWire | None:
        idle = self._idle.get(target, [])
        while True:
            try:
                wire, since = idle.pop()
            except IndexError:
                # Asked for rather than looked at before: threads share this list.
                return None
            if time.monotonic() - since < _KEPT and wire.is_usable():
                return wire
            wire.close()

    def _keep(self, target: Target, wire: AsyncWire) -> None:
        idle = self._idle.setdefault(target, [])
        idle.append((wire, time.monotonic()))
        if len(idle) > _MOST_KEPT:
            oldest, _ = idle.pop(0)
            oldest.close()


class AsyncHttp(Http):
    """The calls of one attempt."""

    def __init__(self, flow: AsyncFlow, connections: AsyncConnections) -> None:
        self._flow = flow
        self._connections = connections

    async def _send(self, call: HttpCall) -> Any:
        limit = self._flow.limit if call.limit is None else call.limit
        if not limit:
            response = await self._exchange(call)
            observed = _read(response, call)
            if observed.refuses(response.status) and call.raise_for_limit:
                raise _rate_limited(call, response, observed)
            return response
        request = self._flow.grant(
            limit, cost=call.cost, keys=call.keys, wait=call.wait, ttl=call.timeout + 60
        )
        async with request as grant:
            return await self._limited(call, limit, grant)

    async def _limited(self, call: HttpCall, limit: str, grant: Grant) -> Response:
        try:
            response = await self._exchange(call)
        except HttpFailed as error:
            # Every received byte counts, even of a failed call; other costs stay as estimated.
            known = {"units": error.received} if "units" in call.cost and error.received else {}
            await grant.settle_answer(known, error.received)
            raise
        observed = _read(response, call)
        refused = observed.refuses(response.status)
        if refused or observed.is_low():
            told = observed.as_json()
            if refused:
                # First of all: meanwhile others send requests in vain.
                told["retry_after"] = _hold(observed)
                told["reason"] = f"the provider answered {response.status}"
            await self._flow.observe(limit, told, call.keys)
        await grant.settle_answer(call.actual(response, refused=refused), response.wire_bytes)
        if refused and call.raise_for_limit:
            raise _rate_limited(call, response, observed)
        return response

    async def _exchange(self, call: HttpCall) -> Response:
        place = call.outgoing.place
        deadline = Deadline(call.timeout)
        try:
            incoming = await self._connections.exchange(call.outgoing, deadline)
        except TimeoutError as error:
            raise HttpTimeout(
                f"{place} had not answered after {deadline.total:g} seconds",
                received=getattr(error, "received", 0),
            ) from error
        except (OSError, MalformedResponse) as error:
            raise HttpFailed(
                f"{call.outgoing.method} {place} failed: {str(error) or type(error).__qualname__}",
                received=getattr(error, "received", 0),
            ) from error
        return Response(call.outgoing, incoming)


def _read(response: Response, call: HttpCall) -> Observed:
    observed = ratelimit.read(response.headers, time.time())
    if observed.nonsense:
        _log.warning(
            "%s sent headers about its limits that mean nothing: %s",
            call.outgoing.place,
            ", ".join(observed.nonsense),
        )
    return observed


def _hold(observed: Observed) -> float:
    """For how long nobody asks; at least a moment, since none would lift the hold of others."""
    pause = observed.pause()
    return _UNSAID if pause is None else max(pause, _SHORTEST)


def _rate_limited(call: HttpCall, response: Response, observed: Observed) -> RateLimited:
    return RateLimited(
        f"{call.outgoing.place} answered {response.status}: not now",
        status=response.status,
        retry_after=observed.pause(),
    )
