"""Service keys of the HTTP API."""

from datetime import datetime
from typing import Literal, NamedTuple

__all__ = ["NewServiceKey", "ServiceKey", "ServiceKeyRole", "ServiceKeyUse"]

ServiceKeyRole = Literal["operator", "producer", "reader"]


class ServiceKey(NamedTuple):
    """A key with which a program signs in to the HTTP API, without its secret."""

    key_id: str
    name: str
    role: ServiceKeyRole
    # The only tenant for which it acts; None: all of them.
    tenant: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    # Exact to the minute.
    last_used_at: datetime | None
    # Whether it was neither revoked nor has expired.
    active: bool


class ServiceKeyUse(NamedTuple):
    """What a server needs to check a key."""

    name: str
    role: ServiceKeyRole
    tenant: str | None
    # SHA-256 of the secret, in hexadecimal digits.
    secret_hash: str
    expires_at: datetime | None


class NewServiceKey(NamedTuple):
    """A key that was just created. `key` is shown once and stored nowhere."""

    key_id: str
    key: str
