"""What `trunkline bench` needs beside the engine's own functions."""

from datetime import datetime

from trunkline.db.call import Call, scalar

__all__ = ["remove_traces", "round_trip"]


def round_trip() -> Call[int]:
    """The least a statement can cost."""
    return Call("select 1", (), scalar)


def remove_traces(queue: str, task: str, since: datetime) -> Call[int]:
    """Remove what a measurement left, which only a member of trunkline_owner may.

    The queue is the measurement's own, so nobody else has jobs in it.
    """
    return Call(
        "with waiting as (delete from trunkline_internal.waiting where queue = %s),"
        " running as (delete from trunkline_internal.running where queue = %s),"
        " finished as ("
        "  delete from trunkline_internal.finished"
        "  where queue = %s and finished_at >= %s::timestamptz returning 1"
        " ),"
        " lanes as (delete from trunkline_internal.lanes where queue = %s),"
        " tasks as (delete from trunkline_internal.tasks where task = %s)"
        " select count(*) from finished",
        (queue, queue, queue, since, queue, task),
        scalar,
    )
