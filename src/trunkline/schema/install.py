"""``trunkline schema install`` and ``trunkline schema upgrade``."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.schema.plan import LOCK_TIMEOUT, Options
from trunkline.schema.runner import Report, bring_up_to_date

__all__ = ["install", "upgrade"]


def install(
    dsn: str,
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    tenant_roles: Sequence[str] = (),
    authenticators: Sequence[str] = (),
) -> Report:
    """Create the schema, or bring an existing one up to date.

    Every process may call it at its start: calls run one after another, and all but the first find
    nothing to migrate. ``tenant_roles`` are your own roles that act for one tenant each.
    ``authenticators`` are logins that act for their callers, such as that of the HTTP API.
    """
    options = Options(
        lock_timeout=lock_timeout,
        tenant_roles=tuple(tenant_roles),
        authenticators=tuple(authenticators),
    )
    return bring_up_to_date(dsn, options, from_nothing=True)


def upgrade(
    dsn: str,
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    tenant_roles: Sequence[str] = (),
    authenticators: Sequence[str] = (),
) -> Report:
    """Apply the missing migrations, and create all functions, views and grants again.

    Unlike ``install`` it refuses a database that has no schema, because then the name of the
    database is probably wrong.
    """
    options = Options(
        lock_timeout=lock_timeout,
        tenant_roles=tuple(tenant_roles),
        authenticators=tuple(authenticators),
    )
    return bring_up_to_date(dsn, options, from_nothing=False)
