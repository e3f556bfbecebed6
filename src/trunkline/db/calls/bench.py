"""Statements of `trunkline bench` in addition to the engine's functions."""

from datetime import datetime

from trunkline.db.call import Call, scalar

__all__ = ["remove_traces", "round_trip"]


def round_trip() -> Call[int]:
    """Run the cheapest possible statement."""
    return Call("select 1", (), scalar)


def remove_traces(queue: str, task: str, since: datetime) -> Call[int]:
    """Remove the jobs of a measurement, which only a member of trunkline_owner may do.

    The queue belongs to the measurement, so it has no other jobs.
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
