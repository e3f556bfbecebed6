"""``trunkline schema upgrade``."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.schema.plan import LOCK_TIMEOUT, Options
from trunkline.schema.runner import Report, bring_up_to_date

__all__ = ["upgrade"]


def upgrade(
    dsn: str, *, lock_timeout: float = LOCK_TIMEOUT, tenant_roles: Sequence[str] = ()
) -> Report:
    """Apply the migrations that are missing and all functions, views and grants again.

    Unlike an installation it refuses a database that has no schema: the name of the database is
    then more likely wrong than meant.
    """
    options = Options(lock_timeout=lock_timeout, tenant_roles=tuple(tenant_roles))
    return bring_up_to_date(dsn, options, from_nothing=False)
