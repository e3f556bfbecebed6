"""Deliberate damage to the engine, and calls that stop half-way."""

from typing import Any

import psycopg

from tests.support.internals.jobs import inserted_running

__all__ = [
    "BREAK_RECLAIM",
    "allow_ambiguous_limits",
    "break_sweep_idempotency",
    "drop_index",
    "finish_twice",
    "illegal_changes",
    "pause_claims_after_promotion",
    "repair_reclaim",
]

Superuser = psycopg.Connection[Any]

BREAK_RECLAIM = """
alter function trunkline_internal.move_running(trunkline_internal.move[], timestamptz)
  rename to move_running_aside
"""
_REPAIR_RECLAIM = """
alter function trunkline_internal.move_running_aside(trunkline_internal.move[], timestamptz)
  rename to move_running
"""

# After the promotion, which gives the claim its transaction id, the claim waits for the test.
_PAUSE_AFTER_PROMOTION = """
alter function trunkline_internal.promote_due(timestamptz, timestamptz, integer)
  rename to promote_due_itself;
create function trunkline_internal.promote_due(
  p_now timestamptz, p_from timestamptz, p_limit integer,
  out promoted integer, out covered timestamptz
) language plpgsql security definer as $$
begin
  select p.promoted, p.covered into promoted, covered
  from trunkline_internal.promote_due_itself(p_now, p_from, p_limit) as p;
  perform pg_advisory_xact_lock_shared(1);
end;
$$;
grant execute on function
  trunkline_internal.promote_due(timestamptz, timestamptz, integer) to trunkline_owner;
"""


def break_sweep_idempotency(superuser: Superuser) -> None:
    """Make the duty sweep_idempotency fail."""
    superuser.execute("alter table trunkline_internal.idempotency_keys rename to elsewhere")


def repair_reclaim(superuser: Superuser) -> None:
    """Make reclaim succeed again after ``BREAK_RECLAIM``."""
    superuser.execute(_REPAIR_RECLAIM)


def allow_ambiguous_limits(superuser: Superuser) -> None:
    """Allow limits whose names another limit can produce."""
    superuser.execute(
        "create or replace function trunkline_internal.lock_limit_templates(p_names text[])"
        " returns boolean language sql as 'select false'"
    )


def drop_index(superuser: Superuser) -> str:
    """Drop an index of the schema; return its qualified name."""
    name = "trunkline_internal.waiting_due"
    superuser.execute(f"drop index {name}".encode())
    return name


def finish_twice(superuser: Superuser) -> None:
    """Record every end of a job a second time, past the guard."""
    superuser.execute("alter table trunkline_internal.finished disable trigger user")
    superuser.execute(
        "insert into trunkline_internal.finished select * from trunkline_internal.finished"
    )


def pause_claims_after_promotion(superuser: Superuser) -> None:
    """Make claims wait for advisory lock 1 after they have promoted due jobs."""
    superuser.execute(_PAUSE_AFTER_PROMOTION)


def illegal_changes() -> dict[str, list[str]]:
    """Return changes of the only waiting job that the guard refuses, by its error codes."""
    delete = "delete from trunkline_internal.waiting"
    return {
        "TG003": [inserted_running(attempt=1)],
        "TG001": [
            "update trunkline_internal.waiting set state = 'scheduled', sequence = null",
        ],
        "TG002": [
            "create temporary table w on commit drop as table trunkline_internal.waiting",
            delete,
            inserted_running(attempt=2, source="w"),
        ],
        "TG004": [delete],
    }
