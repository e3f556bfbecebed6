"""The journey of a call from its first request through redirects."""

from __future__ import annotations

from typing import Final

import httpx2

__all__ = ["Journey", "journey_of"]

_KEY: Final = "trunkline_journey"
# The only headers that are sent to another host. Any other header may be a credential: providers
# use their own names for API keys, which httpx2 cannot know.
_HARMLESS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)


class Journey:
    """The first URL of a call, and how much of its time redirects have used."""

    __slots__ = ("_url", "request", "spent")

    def __init__(self, request: httpx2.Request) -> None:
        self._url = request.url
        # The last request that was sent.
        self.request = request
        self.spent = 0.0

    def redirect(self, request: httpx2.Request) -> None:
        """Continue with the request of a redirect, without credentials if the host differs."""
        self.request = request
        if not self._is_home(request.url):
            for name in {name.lower() for name in request.headers} - _HARMLESS:
                del request.headers[name]

    def _is_home(self, url: httpx2.URL) -> bool:
        if url.host != self._url.host:
            return False
        first, redirected = (_address(self._url), _address(url))
        is_upgrade = (first, redirected) == (("http", 80), ("https", 443))
        return first == redirected or is_upgrade


def _address(url: httpx2.URL) -> tuple[str, int | None]:
    return url.scheme, url.port or {"http": 80, "https": 443}.get(url.scheme)


def journey_of(request: httpx2.Request) -> Journey:
    """Return the journey that a request is part of.

    A client copies the extensions of a request to the request of a redirect. The same request sent
    again is a new call.
    """
    journey = request.extensions.get(_KEY)
    if isinstance(journey, Journey) and journey.request is not request:
        journey.redirect(request)
        return journey
    journey = Journey(request)
    request.extensions[_KEY] = journey
    return journey
