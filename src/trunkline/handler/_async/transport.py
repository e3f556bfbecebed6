"""The transport of ctx.http: every request acquires a grant and settles it at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import httpcore2
import httpx2

from trunkline.errors import RateLimited
from trunkline.handler._async.connections import AsyncConnections
from trunkline.handler._async.response import AsyncCall, AsyncResponse
from trunkline.handler.http import limit_headers
from trunkline.handler.http.exchange import DEFAULT_TIMEOUT, Exchange
from trunkline.handler.http.failures import failures, hide_queries, place
from trunkline.handler.http.journey import journey_of
from trunkline.handler.http.limit_headers import Observed
from trunkline.handler.http.terms import Terms
from trunkline.version import __version__

if TYPE_CHECKING:
    from trunkline.handler._async.grants import AsyncGrants

__all__ = ["AsyncLimitedTransport", "open_client"]

# How long a bucket is paused if the provider refuses a call without naming a time.
_DEFAULT_PAUSE: Final = 5.0
# A shorter pause would end the pauses that other calls have set.
_SHORTEST_PAUSE: Final = 1.0
# How much longer a grant lasts than its call, so that the handler can read the answer slowly.
_GRACE: Final = 60.0
# The duration of the grant for calls without a timeout.
_LONGEST_CALL: Final = 3600.0
_REPEATABLE: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})

_log = logging.getLogger("trunkline.http")
logging.getLogger("httpx2").addFilter(hide_queries)


def open_client(
    grants: AsyncGrants, connections: AsyncConnections, terms: Terms
) -> httpx2.AsyncClient:
    """Return a client for one attempt; cookies are not shared with other jobs."""
    return httpx2.AsyncClient(
        transport=AsyncLimitedTransport(grants, connections, terms),
        headers={"User-Agent": f"trunkline/{__version__}"},
        timeout=DEFAULT_TIMEOUT,
        # Proxy variables of the environment are ignored: the handler decides who sees credentials.
        trust_env=False,
    )


class AsyncLimitedTransport(httpx2.AsyncBaseTransport):
    """Sends requests with the limit and cost of one client."""

    def __init__(self, grants: AsyncGrants, connections: AsyncConnections, terms: Terms) -> None:
        self._grants = grants
        self._connections = connections
        self._terms = terms

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Acquire a grant, send the request, and record what the provider reports of its limits."""
        if request.url.scheme not in {"http", "https"} or not request.url.host:
            raise httpx2.UnsupportedProtocol(
                f"{place(request.url)} does not begin with http:// or https://", request=request
            )
        journey = journey_of(request)
        terms = self._terms
        timeout = request.extensions.get("timeout") or httpx2.Timeout(DEFAULT_TIMEOUT).as_dict()
        limit = self._grants.limit if terms.limit is None else terms.limit
        grant = None
        if limit:
            bound = Exchange(timeout, 0.0).total or _LONGEST_CALL
            grant = await self._grants.grant(
                limit, cost=terms.cost, keys=terms.keys, wait=terms.wait, ttl=bound + _GRACE
            ).__aenter__()
        call = AsyncCall(terms, grant, journey, Exchange(timeout, journey.spent))
        try:
            response = await self._send(request, call)
        except BaseException:
            await call.settle(None)
            raise
        try:
            observed = _observed(response)
            call.refused = observed.refuses(response.status_code)
            if limit:
                await self._report_limits(limit, observed, response)
        except BaseException:
            await response.aclose()
            raise
        if call.refused and terms.raise_for_limit:
            await _discard(response)
            raise RateLimited(
                f"{place(request.url)} answered {response.status_code}: the call was refused",
                status=response.status_code,
                retry_after=observed.pause(),
            )
        return response

    async def _send(self, request: httpx2.Request, call: AsyncCall) -> AsyncResponse:
        exchange = call.exchange
        with failures(request, exchange):
            try:
                answer = await self._exchange(request, exchange)
            except (httpcore2.NetworkError, httpcore2.RemoteProtocolError):
                # The server has just closed a kept connection. It may have read the request, so
                # only a request that is safe to repeat is sent again.
                if exchange.connected or exchange.received or not _is_repeatable(request):
                    raise
                answer = await self._exchange(request, exchange)
        exchange.answered = True
        return AsyncResponse(call, request, answer, AsyncBody(request, exchange, answer.stream))

    async def _exchange(self, request: httpx2.Request, exchange: Exchange) -> httpcore2.Response:
        timeouts = dict.fromkeys(("connect", "read", "write"), exchange)
        return await self._connections.pool().handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions={**request.extensions, "timeout": timeouts},
            )
        )

    async def _report_limits(self, limit: str, observed: Observed, response: AsyncResponse) -> None:
        """Record limits before the body is read: meanwhile other calls would be refused."""
        refused = observed.refuses(response.status_code)
        if not refused and not observed.is_low():
            return
        facts = observed.as_json()
        if refused:
            pause = observed.pause()
            facts["retry_after"] = _DEFAULT_PAUSE if pause is None else max(pause, _SHORTEST_PAUSE)
            facts["reason"] = f"the provider answered {response.status_code}"
        await self._grants.observe(limit, facts, self._terms.keys)


class AsyncBody(httpx2.AsyncByteStream):
    """The body of an answer as it arrives."""

    def __init__(self, request: httpx2.Request, exchange: Exchange, stream: Any) -> None:
        self._request = request
        self._exchange = exchange
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with failures(self._request, self._exchange):
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        """Return the connection to the pool, or close it if data is left unread."""
        await self._stream.aclose()


def _is_repeatable(request: httpx2.Request) -> bool:
    return request.method in _REPEATABLE and isinstance(request.stream, httpx2.ByteStream)


def _observed(response: httpx2.Response) -> Observed:
    observed = limit_headers.read(response.headers, time.time())
    if observed.unreadable:
        _log.warning(
            "%s sent headers about its limits that cannot be read: %s",
            place(response.url),
            ", ".join(observed.unreadable),
        )
    return observed


async def _discard(response: AsyncResponse) -> None:
    """Read an answer to the end, which settles it and leaves its connection usable."""
    with suppress(httpx2.HTTPError):
        await response.aread()
    await response.aclose()
