"""What operators changed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

__all__ = ["LogEntry"]


class LogEntry(NamedTuple):
    """One line of the operator log: who changed what, why, from what and to what.

    `login` is the user whom the server authenticated; `actor` is the person behind it, as the
    client stated. `before` is None if the object is new, `after` if it is gone.
    """

    log_id: int
    at: datetime
    login: str
    actor: str
    action: str
    kind: str
    object: str | None
    tenant: str | None
    reason: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
