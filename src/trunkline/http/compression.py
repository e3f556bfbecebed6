"""Compresses answers, except for files and streams."""

from __future__ import annotations

from typing import Final

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Compression"]

# Smaller answers gain nothing.
_SMALLEST: Final = 1024
_LEVEL: Final = 5


class Compression:
    """Compresses with gzip what clients accept so.

    Links to files are left out, because ranges count the bytes of the file. Archives are compressed
    already, and of streams of events each event has to leave at once.
    """

    def __init__(self, app: ASGIApp, *, except_for: str) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, minimum_size=_SMALLEST, compresslevel=_LEVEL)
        self._except_for = except_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_plain = scope["type"] != "http" or (
            scope["path"].startswith(self._except_for)
            or scope["path"].endswith(("/archive", "/events"))
        )
        await (self._app if is_plain else self._compressed)(scope, receive, send)
