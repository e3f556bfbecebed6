"""The operator log."""

from datetime import datetime

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
    object_start: str | None,
    actor: str | None,
    since: datetime | None,
    until: datetime | None,
) -> Call[list[LogEntry]]:
    """Return the operator log, newest first; `before` is the last id of the previous page.

    An object matches that has the name, or that begins with `object_start`.
    """
    return Call(
        "select log_id, at, login, actor, action, kind, object, tenant, reason, before, after"
        " from trunkline.operator_log"
        " where log_id < coalesce(%s::bigint, 9223372036854775807)"
        " and (%s::text is null or action = %s) and (%s::text is null or kind = %s)"
        " and (%s::text is null or object = %s or starts_with(object, %s))"
        " and (%s::text is null or actor = %s)"
        " and at >= coalesce(%s::timestamptz, '-infinity')"
        " and at < coalesce(%s::timestamptz, 'infinity')"
        " order by log_id desc limit %s::bigint",
        (
            before,
            action,
            action,
            kind,
            kind,
            object_name,
            object_name,
            object_start,
            actor,
            actor,
            since,
            until,
            limit,
        ),
        rows_of(LogEntry),
    )
