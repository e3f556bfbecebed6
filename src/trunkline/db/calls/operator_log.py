"""The operator log."""

from trunkline.db.call import Call, rows_of
from trunkline.model import LogEntry

__all__ = ["operator_log"]


def operator_log(
    *,
    limit: int,
    before: int | None,
    action: str | None,
    kind: str | None,
    object_name: str | None,
    actor: str | None,
) -> Call[list[LogEntry]]:
    """Lines of the operator log, newest first; `before` is the last id of the page before."""
    return Call(
        "select log_id, at, login, actor, action, kind, object, tenant, reason, before, after"
        " from trunkline.operator_log"
        " where log_id < coalesce(%s::bigint, 9223372036854775807)"
        " and (%s::text is null or action = %s) and (%s::text is null or kind = %s)"
        " and (%s::text is null or object = %s) and (%s::text is null or actor = %s)"
        " order by log_id desc limit %s::bigint",
        (before, action, action, kind, kind, object_name, object_name, actor, actor, limit),
        rows_of(LogEntry),
    )
