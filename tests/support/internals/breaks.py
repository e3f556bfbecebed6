"""Damage done to the engine on purpose, and calls of it that stop half-way."""

from typing import Any

import psycopg

from tests.support.internals.jobs import inserted_running

__all__ = [
    "break_reclaim",
    "break_sweep_idempotency",
    "drop_index",
    "drop_schemas",
    "forget_migrations",
    "illegal_changes",
    "mend_reclaim",
    "pause_claims_after_promotion",
    "switch_off_duty_locks",
]

Superuser = psycopg.Connection[Any]

_MOVE = "(trunkline_internal.move[], timestamptz)"
# Promotion, which gives the claim its transaction id, is followed by a wait for the test.
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


def break_reclaim(superuser: Superuser) -> None:
    """Let every call fail that ends an attempt, reclaim among them."""
    superuser.execute(
        f"alter function trunkline_internal.move_running{_MOVE} rename to move_aside".encode()
    )


def mend_reclaim(superuser: Superuser) -> None:
    """Undo ``break_reclaim``."""
    superuser.execute(
        f"alter function trunkline_internal.move_aside{_MOVE} rename to move_running".encode()
    )


def break_sweep_idempotency(superuser: Superuser) -> None:
    """Let the duty sweep_idempotency fail."""
    superuser.execute("alter table trunkline_internal.idempotency_keys rename to elsewhere")


def switch_off_duty_locks(superuser: Superuser) -> None:
    """Let several sessions run the same duty at once."""
    superuser.execute(
        "create or replace function trunkline_internal.duty_begin(p_duty text)"
        " returns boolean language sql volatile as 'select true'"
    )


def pause_claims_after_promotion(superuser: Superuser) -> None:
    """Let claims wait for advisory lock 1 after they have promoted what is due."""
    superuser.execute(_PAUSE_AFTER_PROMOTION)


def drop_index(superuser: Superuser) -> str:
    """Drop the index of due jobs and return its qualified name."""
    superuser.execute("drop index trunkline_internal.waiting_due")
    return "trunkline_internal.waiting_due"


def drop_schemas(superuser: Superuser) -> None:
    """Remove the engine with everything that depends on it."""
    superuser.execute("drop schema trunkline, trunkline_internal cascade")


def forget_migrations() -> str:
    """Return the statement after which only the first migration counts as installed."""
    return "delete from trunkline_internal.schema_migrations where version > 1"


def illegal_changes() -> dict[str, list[str]]:
    """Return changes of the only waiting job that the guard refuses, by its error codes."""
    delete = "delete from trunkline_internal.waiting"
    return {
        "TG003": [inserted_running(attempt=1)],
        "TG001": [
            "update trunkline_internal.waiting set state = 'blocked', sequence = null",
            "update trunkline_internal.waiting set state = 'scheduled'",
        ],
        "TG002": [
            "create temporary table w on commit drop as table trunkline_internal.waiting",
            delete,
            inserted_running(attempt=2, source="w"),
        ],
        "TG004": [delete],
    }
