"""The answer of a provider."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Self

import msgspec

from trunkline.client.http.incoming import Headers, Incoming
from trunkline.client.http.outgoing import Outgoing
from trunkline.errors import BadStatus

__all__ = ["Response"]

_FIRST_ERROR: Final = 400
_EXCERPT: Final = 200


class Response:
    """What a provider answered, whole: the connection is free again."""

    __slots__ = ("_place", "body", "headers", "reason", "status", "url", "wire_bytes")

    def __init__(self, outgoing: Outgoing, incoming: Incoming) -> None:
        self.url = outgoing.url
        self._place = outgoing.place
        self.status = incoming.status
        self.reason = incoming.reason
        # By name in any case; a Mapping of text.
        self.headers: Headers = incoming.headers
        self.body = bytes(incoming.body)
        # Bytes received for it, headers and framing included.
        self.wire_bytes = incoming.wire_bytes

    def __await__(self) -> Generator[Any, Any, Self]:
        """So that the same line can be typed in both kinds of handlers; see Http."""
        yield from ()
        return self

    @property
    def ok(self) -> bool:
        """Whether the status is none of an error."""
        return self.status < _FIRST_ERROR

    @property
    def text(self) -> str:
        """The body as text, by the charset of its content type or UTF-8."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.strip().partition("=")
            if name.lower() == "charset":
                try:
                    return self.body.decode(value.strip("\"' "), "replace")
                except LookupError:
                    break
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON; raises ValueError where it is none."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"the answer of {self._place} is no JSON: {error}") from error

    def raise_for_status(self) -> Self:
        """Raise BadStatus, which fails the attempt, if the status is an error."""
        if not self.ok:
            said = self.text[:_EXCERPT].strip()
            raise BadStatus(
                f"{self._place} answered {self.status} {self.reason}"
                + (f": {said}" if said else ""),
                status=self.status,
            )
        return self

    def __repr__(self) -> str:
        return f"<response {self.status} of {self._place}>"
