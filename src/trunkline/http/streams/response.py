"""A response of server-sent events, which notices when its client is gone."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

__all__ = ["EventStream", "event_bytes"]

# Clients that lost the connection at once come back spread over this many milliseconds.
_RETRY: Final = (1000, 5000)
_COMMENT: Final = b":\n\n"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    # Nginx would collect events otherwise.
    "X-Accel-Buffering": "no",
}

_encoder = msgspec.json.Encoder()


def event_bytes(kind: str, data: Any, known: str | None = None) -> bytes:
    """Return one event. JSON has no line breaks, so the data is one line."""
    head = f"event: {kind}\n" if known is None else f"event: {kind}\nid: {known}\n"
    return head.encode() + b"data: " + _encoder.encode(data) + b"\n\n"


class EventStream(Response):
    """Sends what a generator yields; None stands for a comment, which keeps the connection open.

    Nothing is read ahead: the generator waits while the client does not take what was sent. A
    client that takes nothing for `stalled` seconds is disconnected.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[bytes | None, None],
        *,
        stalled: float,
        on_start: Callable[[EventStream], None],
        on_end: Callable[[EventStream], None],
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._stalled = stalled
        self._on_end = on_end
        self._stopped = False
        self._sending: asyncio.Future[None] | None = None
        on_start(self)

    def stop(self) -> None:
        """End the stream, because the server ends."""
        self._stopped = True
        if self._sending is not None:
            self._sending.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client has gone."""
        try:
            start = {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
            await send(start)
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            sending = self._sending = asyncio.ensure_future(self._send_all(send))
            watching = asyncio.ensure_future(_disconnected(receive))
            try:
                await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
                if self._stopped:
                    await send({"type": "http.response.body", "body": b""})
                elif sending.done():
                    sending.result()
            finally:
                sending.cancel()
                watching.cancel()
                await asyncio.gather(sending, watching, return_exceptions=True)
        finally:
            await self._events.aclose()
            self._on_end(self)

    async def _send_all(self, send: Send) -> None:
        async def chunk(body: bytes, *, more: bool = True) -> None:
            async with asyncio.timeout(self._stalled):
                await send({"type": "http.response.body", "body": body, "more_body": more})

        pause = random.randint(*_RETRY)  # noqa: S311 - spreads clients, hides nothing
        try:
            await chunk(f"retry: {pause}\n\n".encode())
            async with aclosing(self._events) as events:
                async for event in events:
                    await chunk(_COMMENT if event is None else event)
            await chunk(b"", more=False)
        except (TimeoutError, OSError):
            # The client takes nothing, or its connection broke. Returning closes the connection.
            return


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def remaining(end: float) -> float:
    """Return the seconds until a time of the monotonic clock, at least zero."""
    return max(end - time.monotonic(), 0.0)
