"""Keys of an identity provider, fetched from an address of the configuration."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from typing import Final

import httpx2

from trunkline.http.authentication.verification_keys import VerificationKey, keys_of_jwks

__all__ = ["RemoteKeys"]

_log = logging.getLogger("trunkline.http")
# How long a set of keys is used before it is fetched again.
_FRESH: Final = 300.0
# How long a set is used when the provider no longer answers.
_LONGEST: Final = 24 * 3600.0
# The shortest time between two fetches, also for tokens with unknown keys and after failures.
_PAUSE: Final = 10.0
_TIMEOUT: Final = 5.0
_LARGEST: Final = 256 * 1024


class RemoteKeys:
    """The keys of one address: the last good set, renewed by one fetch at a time."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._keys: list[VerificationKey] = []
        self._fetched = clock() - _LONGEST
        self._tried = clock() - _PAUSE
        self._lock = asyncio.Lock()

    async def keys(self, kid: str | None) -> list[VerificationKey]:
        """Return the keys; fetch them again if they are old, or if none has this id."""
        now = self._clock()
        known = self._keys and now - self._fetched < _FRESH
        if known and (kid is None or any(key.kid == kid for key in self._keys)):
            return self._keys
        if now - self._tried >= _PAUSE:
            async with self._lock:
                # Another request may have fetched them meanwhile.
                if self._clock() - self._tried >= _PAUSE:
                    await self._fetch()
        elif self._lock.locked():
            async with self._lock:
                pass
        if self._clock() - self._fetched > _LONGEST:
            self._keys = []
        return self._keys

    async def _fetch(self) -> None:
        self._tried = self._clock()
        try:
            keys = keys_of_jwks(json.loads(await self._read()))
        except (httpx2.HTTPError, ValueError, RecursionError, TimeoutError) as error:
            _log.warning("cannot fetch the keys of tokens from %s: %s", self._url, error)
            return
        if not keys:
            # An empty answer is more likely a mistake than a provider that signs nothing.
            _log.warning("%s has no key for RS256 or ES256", self._url)
            return
        self._keys = keys
        self._fetched = self._clock()

    async def _read(self) -> bytes:
        async with (
            asyncio.timeout(_TIMEOUT),
            httpx2.AsyncClient(timeout=_TIMEOUT, follow_redirects=False, trust_env=False) as client,
            client.stream("GET", self._url) as response,
        ):
            if response.status_code != 200:
                raise ValueError(f"status {response.status_code}")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LARGEST:
                    raise ValueError("the document is too large")
            return bytes(body)
