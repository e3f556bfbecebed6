"""Verifies service keys. A key is `tlk_`, the public id of 12 characters, `_` and the secret."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Final

from trunkline.db.calls.access import use_service_key
from trunkline.db.pool import AsyncPool
from trunkline.errors import SchemaForbidden, SignInRefused
from trunkline.http.caller import Caller
from trunkline.model import ServiceKeyUse

__all__ = ["PREFIX", "ServiceKeys"]

PREFIX: Final = "tlk_"
_KEY: Final = re.compile(r"tlk_([0-9a-z]{12})_([0-9A-Za-z_-]{43})", re.ASCII)
# A key that was read is believed for this long, also after it was revoked.
_FRESH: Final = 5.0
_MOST: Final = 1000
# The role that may read keys. The login of the server needs it to serve any key.
_READER: Final = {"role": "trunkline_operator"}
_NO_HASH: Final = "0" * 64


class ServiceKeys:
    """Reads keys from the database, each at most once in five seconds, and compares secrets."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._known: OrderedDict[str, tuple[float, ServiceKeyUse | None]] = OrderedDict()

    async def caller(self, text: str) -> Caller:
        """Return the caller of a key, or refuse it."""
        match = _KEY.fullmatch(text)
        if match is None:
            raise SignInRefused("The service key cannot be read.")
        key_id, secret = match.groups()
        key = await self._find(key_id)
        # An unknown key takes as long as a wrong secret.
        expected = key.secret_hash if key is not None else _NO_HASH
        actual = hashlib.sha256(secret.encode()).hexdigest()
        if not hmac.compare_digest(expected, actual) or key is None:
            raise SignInRefused("The service key is not valid.")
        if key.expires_at is not None and key.expires_at <= datetime.now(UTC):
            raise SignInRefused("The service key is not valid.")
        return Caller(
            "key",
            key.name,
            role=f"trunkline_{key.role}",
            tenant=key.tenant,
            expires_at=key.expires_at,
            subject=key_id,
        )

    async def _find(self, key_id: str) -> ServiceKeyUse | None:
        now = time.monotonic()
        read_at, key = self._known.get(key_id, (-_FRESH, None))
        if now - read_at < _FRESH:
            return key
        try:
            key = await self._pool.run_with(use_service_key(key_id), _READER)
        except SchemaForbidden as error:
            raise SignInRefused(
                "This server takes no service keys.",
                hint="Its login is no member of trunkline_operator, which may read the keys.",
            ) from error
        self._known[key_id] = (now, key)
        self._known.move_to_end(key_id)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return key
