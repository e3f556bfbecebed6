"""The outermost layer: ids of requests, access logs, and an answer whatever happens."""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.http.problems import problem_response

__all__ = ["RequestContext"]

_log = logging.getLogger("trunkline.http.access")
# Ids that come from outside go into logs and headers.
_SAFE: Final = re.compile(r"[0-9A-Za-z._:/+=@-]{1,128}", re.ASCII)
_SECURE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class RequestContext:
    """Gives each request an id, and logs one line when it has ended.

    The line has method, path, status, bytes, time and caller: never the query, which may have a
    signature, and never the body. X-Request-ID of the client is kept if it is harmless text.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _safe(scope, b"x-request-id") or secrets.token_hex(8)
        scope["trunkline.request_id"] = request_id
        scope["trunkline.correlation_id"] = _safe(scope, b"x-correlation-id")
        started = time.perf_counter()
        status, sent = 0, 0

        async def watched(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message.get("headers", ())}
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    *((name, value) for name, value in _SECURE if name not in present),
                ]
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if status:
                # Too late for an answer: the connection ends, so that nobody takes it for whole.
                _log.warning("an answer broke off", exc_info=error)
                raise
            await problem_response(Request(scope), error)(scope, receive, watched)
        finally:
            self._report(scope, status, sent, time.perf_counter() - started)

    def _report(self, scope: Scope, status: int, sent: int, duration: float) -> None:
        caller = scope.get("trunkline.caller")
        client = scope.get("client")
        line = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "bytes": sent,
            "milliseconds": round(duration * 1000, 1),
            "request_id": scope["trunkline.request_id"],
            "correlation_id": scope["trunkline.correlation_id"],
            "address": client[0] if client else None,
            "caller": None if caller is None else f"{caller.kind} {caller.name}",
            "tenant": None if caller is None else caller.tenant,
        }
        _log.info(
            "%s %s %s in %s ms",
            line["method"],
            line["path"],
            status,
            line["milliseconds"],
            extra={name: value for name, value in line.items() if value is not None},
        )


def _safe(scope: Scope, name: bytes) -> str | None:
    for header, value in scope["headers"]:
        if header == name:
            text: str = value.decode("latin-1")
            return text if _SAFE.fullmatch(text) else None
    return None
