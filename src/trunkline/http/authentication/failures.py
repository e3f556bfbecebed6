"""Limits how often an address may fail to sign in."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from typing import Final

from trunkline.errors import TooManyRequests

__all__ = ["SignInFailures"]

_WINDOW: Final = 60.0
_ADDRESSES: Final = 10_000


class SignInFailures:
    """Counts failed sign-ins by address within a minute, for 10,000 addresses at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        # When the window of an address began, and how often it failed in it; the oldest first.
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse an address that has failed too often, before its credentials are read."""
        began, count = self._failures.get(_network(address), (0.0, 0))
        left = began + _WINDOW - time.monotonic()
        if count >= self._most and left > 0:
            raise TooManyRequests(
                "This address has failed to sign in too often.",
                headers={"Retry-After": str(int(left) + 1)},
            )

    def add(self, address: str) -> None:
        """Count a failure."""
        key = _network(address)
        now = time.monotonic()
        began, count = self._failures.pop(key, (now, 0))
        if now - began >= _WINDOW:
            began, count = now, 0
        self._failures[key] = (began, count + 1)
        if len(self._failures) > _ADDRESSES:
            self._failures.popitem(last=False)


def _network(address: str) -> str:
    """Return an IPv4 address, or the network of 64 bits that one customer has in IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
