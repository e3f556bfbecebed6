"""Tickets for streams, because EventSource of a browser cannot send a header Authorization.

A ticket is a signed statement of who opens which stream, valid for a minute. The stream that it
opens ends when the token of its caller does.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from trunkline.errors import SignInRefused
from trunkline.http.caller import Caller
from trunkline.http.streams.settings import StreamSettings

__all__ = ["Tickets"]

_LONGEST: Final = 12_000
_SIGNATURE: Final = 32


class _Ticket(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What a ticket states."""

    path: str
    until: float
    kind: Literal["key", "token"]
    name: str
    role: str
    tenant: str | None
    claims: dict[str, Any]
    expires_at: float | None
    subject: str | None


class Tickets:
    """Issues and verifies tickets."""

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = settings
        self._decoder = msgspec.json.Decoder(_Ticket)

    def issue(self, path: str, caller: Caller) -> tuple[str, datetime]:
        """Return a ticket with which this caller may open this path, and until when."""
        assert caller.kind != "anonymous"  # noqa: S101 - the route has checked it
        expires = None if caller.expires_at is None else caller.expires_at.timestamp()
        until = min(time.time() + self._settings.ticket_lifetime, expires or float("inf"))
        ticket = _Ticket(
            path,
            until,
            caller.kind,
            caller.name,
            caller.role,
            caller.tenant,
            dict(caller.claims),
            expires,
            caller.subject,
        )
        content = msgspec.json.encode(ticket)
        signed = hmac.digest(self._settings.ticket_secret, content, "sha256") + content
        text = base64.urlsafe_b64encode(signed).decode().rstrip("=")
        return text, datetime.fromtimestamp(until, UTC)

    def caller(self, path: str, text: str) -> Caller:
        """Return the caller of a ticket for this path, or refuse it."""
        content = self._verified(text)
        try:
            ticket = self._decoder.decode(content)
        except msgspec.DecodeError as error:
            raise SignInRefused("The ticket cannot be read.") from error
        if ticket.path != path:
            raise SignInRefused("The ticket is for another stream.")
        if ticket.until <= time.time():
            raise SignInRefused("The ticket has expired.", hint="Ask for another ticket.")
        expires = ticket.expires_at
        return Caller(
            ticket.kind,
            ticket.name,
            role=ticket.role,
            tenant=ticket.tenant,
            claims=ticket.claims,
            expires_at=None if expires is None else datetime.fromtimestamp(expires, UTC),
            subject=ticket.subject,
        )

    def _verified(self, text: str) -> bytes:
        if len(text) > _LONGEST or not text.isascii():
            raise SignInRefused("The ticket cannot be read.")
        try:
            signed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise SignInRefused("The ticket cannot be read.") from error
        signature, content = signed[:_SIGNATURE], signed[_SIGNATURE:]
        if not hmac.compare_digest(
            signature, hmac.digest(self._settings.ticket_secret, content, "sha256")
        ):
            raise SignInRefused("This server has not signed the ticket.")
        return content
