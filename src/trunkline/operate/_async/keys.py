"""Service keys of the HTTP API."""

from __future__ import annotations

import hashlib
import secrets
import string
from datetime import datetime
from typing import Final

from trunkline.db.calls import access
from trunkline.model import NewServiceKey, ServiceKey, ServiceKeyRole
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncKeys"]

_LETTERS: Final = string.ascii_lowercase + string.digits


class AsyncKeys:
    """Service keys of the HTTP API; `operator.keys`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def create(
        self,
        name: str,
        role: ServiceKeyRole,
        *,
        tenant: str | None = None,
        expires_at: datetime | None = None,
        reason: str | None = None,
    ) -> NewServiceKey:
        """Create a key that acts in a role, for one tenant if named. Only a hash is stored."""
        key_id = "".join(secrets.choice(_LETTERS) for _ in range(12))
        secret = secrets.token_urlsafe(32)
        call = access.create_service_key(
            key_id,
            hashlib.sha256(secret.encode()).hexdigest(),
            name=name,
            role=role,
            tenant=tenant,
            expires_at=expires_at,
        )
        await self._session.run(call, reason=reason)
        return NewServiceKey(key_id, f"tlk_{key_id}_{secret}")

    async def list(self) -> list[ServiceKey]:
        """Return all keys, the newest first, revoked ones too."""
        return await self._session.run(access.service_keys())

    async def revoke(self, key: str, *, reason: str | None = None) -> bool:
        """Revoke a key by its id; return False if it was revoked before.

        Servers that have just used it accept it for five seconds more.
        """
        return await self._session.run(access.revoke_service_key(key, reason), reason=reason)
