"""Calls about service keys of the HTTP API."""

from collections.abc import Sequence
from datetime import datetime

from trunkline.db.call import Call, Row, nothing, rows_of, scalar
from trunkline.model import ServiceKey, ServiceKeyRole, ServiceKeyUse

__all__ = ["create_service_key", "revoke_service_key", "service_keys", "use_service_key"]


def create_service_key(
    key: str,
    secret_hash: str,
    *,
    name: str,
    role: ServiceKeyRole,
    tenant: str | None,
    expires_at: datetime | None,
) -> Call[None]:
    """Store a service key with the hash of its secret."""
    return Call(
        "select trunkline.create_service_key(p_key => %s, p_hash => %s, p_name => %s,"
        " p_role => %s, p_tenant => %s, p_expires_at => %s::timestamptz)",
        (key, secret_hash, name, role, tenant, expires_at),
        nothing,
    )


def revoke_service_key(key: str, reason: str | None) -> Call[bool]:
    """Revoke a service key; return False if it was revoked before."""
    return Call(
        "select trunkline.revoke_service_key(p_key => %s, p_reason => %s)", (key, reason), scalar
    )


def use_service_key(key: str) -> Call[ServiceKeyUse | None]:
    """Return a key that still works, with the hash of its secret, and record its use."""

    def decode(rows: Sequence[Row]) -> ServiceKeyUse | None:
        return ServiceKeyUse(*rows[0]) if rows else None

    return Call(
        "select name, role, tenant, secret_hash, expires_at"
        " from trunkline.use_service_key(p_key => %s)",
        (key,),
        decode,
    )


def service_keys() -> Call[list[ServiceKey]]:
    """Return all service keys, the newest first."""
    return Call(
        "select key_id, name, role, tenant, created_at, created_by, expires_at, revoked_at,"
        " revoked_by, last_used_at, active from trunkline.service_keys"
        " order by created_at desc, key_id",
        (),
        rows_of(ServiceKey),
    )
