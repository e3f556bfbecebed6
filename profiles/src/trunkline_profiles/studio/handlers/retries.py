"""Quick retries within one attempt, for errors of the network only.

They do not multiply the three attempts of a task invisibly: there are at most three calls, and each
of them is charged to the model's limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

__all__ = ["WAITS", "call_again"]

T = TypeVar("T")

# Seconds before the second and the third call.
WAITS: Final = (5.0, 10.0)


async def call_again(
    call: Callable[[], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Call, and again if the connection failed; other errors end the attempt."""
    import httpx2  # noqa: PLC0415 - an extra, and only text workers need it

    for wait in WAITS:
        try:
            return await call()
        except httpx2.TransportError:
            await sleep(wait)
    return await call()
