"""An answer that settles its call when it has been read or closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpcore2
import httpx2

from trunkline.handler._async.grants import Grant
from trunkline.handler.http.exchange import LARGEST_ANSWER, Exchange
from trunkline.handler.http.failures import bad_status, place
from trunkline.handler.http.journey import Journey
from trunkline.handler.http.terms import Terms

__all__ = ["AsyncCall", "AsyncResponse"]


class AsyncCall:
    """One exchange with a provider, and its grant."""

    def __init__(
        self, terms: Terms, grant: Grant | None, journey: Journey, exchange: Exchange
    ) -> None:
        self._terms = terms
        self._grant = grant
        self._journey = journey
        self.exchange = exchange
        # Whether the provider refused the call for now.
        self.refused = False
        self._settled = False

    async def settle(self, response: httpx2.Response | None) -> None:
        """Settle once, with a whole answer or with the bytes that have arrived."""
        if self._settled:
            return
        self._settled = True
        self._journey.spent = self.exchange.elapsed
        if self._grant is None:
            return
        received = self.exchange.received
        try:
            actual = self._terms.actual(response, refused=self.refused, received=received)
            await self._grant.settle_answer(actual, received)
        finally:
            # After an error the estimate stays charged, but the slot becomes free.
            await self._grant.close()


class AsyncResponse(httpx2.Response):
    """An answer that settles at its end. A streamed one keeps its slot until the stream ends."""

    def __init__(
        self,
        call: AsyncCall,
        request: httpx2.Request,
        answer: httpcore2.Response,
        body: httpx2.AsyncByteStream,
    ) -> None:
        super().__init__(
            answer.status,
            headers=answer.headers,
            stream=body,
            extensions=answer.extensions,
            request=request,
        )
        self._call = call
        # Whether the body is read as a whole. Then reading settles the call; otherwise, closing.
        self._whole = False

    async def aread(self) -> bytes:
        """Read the whole body and settle."""
        self._whole = True
        try:
            content = await super().aread()
        except BaseException:
            await self._end(None)
            raise
        await self._end(self)
        return content

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        """Decompress the body, up to the bound of an answer."""
        size = 0
        # The blocking form is a generator too, but httpx2 annotates it as an iterator.
        stream = super().aiter_bytes(chunk_size)
        async with aclosing(stream) as parts:  # type: ignore[type-var, unused-ignore]
            async for part in parts:
                size += len(part)
                if size > LARGEST_ANSWER:
                    raise httpx2.DecodingError(
                        f"{place(self.url)} sent a body that is too large when decompressed",
                        request=self.request,
                    )
                yield part

    async def aclose(self) -> None:
        """Close the stream and settle."""
        await super().aclose()
        if not self._whole:
            await self._end(None)

    async def _end(self, response: httpx2.Response | None) -> None:
        # Set before the user's `settle` function is called, which may read it.
        self.extensions["wire_bytes"] = self._call.exchange.received
        await self._call.settle(response)

    def raise_for_status(self) -> httpx2.Response:
        """Raise HTTPStatusError, without the query of the URL, unless the call succeeded."""
        if self.is_success:
            return self
        raise bad_status(self)
