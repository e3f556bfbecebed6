"""Buckets (limits with their keys filled in): their counts, and how claims scan them."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

__all__ = [
    "BucketState",
    "Turn",
    "adjustments_ahead",
    "begin_turn",
    "bucket_states",
    "buckets",
    "buckets_of_running",
    "charged",
    "close_empty_buckets",
    "counts_slots_only",
    "cursor",
    "free_slots",
    "most_running_per_bucket",
    "names_of_waiting",
    "open_buckets",
    "open_in_queues",
    "remove_limit",
    "room",
    "share_group",
    "waits_for_bucket",
]

Superuser = psycopg.Connection[Any]

_STATES = """
select s.revision, s.holders, s.refused, s.refused_at is not null, s.paused_until,
  s.adjusted_below is not null, s.computed_by = l.updated_at
from trunkline_internal.limits as l
join trunkline_internal.bucket_states as s on s.bucket = l.bucket
where l.name = %s
"""
_OF_ALL = """
with buckets as (
  select array_agg(n.bucket) as buckets, array_agg(n.limit_id) as limits
  from trunkline_internal.bucket_names as n
)
select n.name, q.slots, q.living
from ({query}) as q
join trunkline_internal.bucket_names as n on n.bucket = q.bucket
"""
_ROOM = """
select r.bucket, r.slots, r.living
from buckets as b
cross join lateral trunkline_internal.bucket_room(
  p_buckets => b.buckets, p_limits => b.limits, p_now => trunkline.clock(), p_wanted => 5
) as r
where r.slots > 0 and r.paused_until is null
"""
_FREE_SLOTS = """
select r.bucket, r.slots, r.living
from buckets as b
cross join lateral trunkline_internal.free_slots(
  p_buckets => b.buckets, p_limits => b.limits, p_wanted => 5, p_now => trunkline.clock()
) as f
cross join lateral unnest(f.rooms) as r
"""
_CHARGED = """
select
  n.name, coalesce(r.live, 0), coalesce((r.charged).requests_of_minute, 0),
  coalesce((r.charged).requests_of_hour, 0), coalesce((r.charged).tokens_of_minute, 0),
  coalesce((r.charged).tokens_of_hour, 0), r.spent
from (
  select distinct on (n.bucket) n.bucket, n.name, n.limit_id
  from trunkline_internal.bucket_names as n
  order by n.bucket, n.limit_id desc
) as n
cross join lateral trunkline_internal.bucket_room(
  p_buckets => array[n.bucket], p_limits => array[n.limit_id], p_now => trunkline.clock()
) as r
order by n.name
"""
_AHEAD = """
select count(*)
from trunkline_internal.bucket_adjustments as c
where c.at > extract(epoch from trunkline.clock()) + 2
  and c.xid >= coalesce((
    select max(s.adjusted_below)
    from trunkline_internal.bucket_states as s
    where s.bucket = c.bucket
  ), '0')
"""


class Turn(NamedTuple):
    """The bucket after which a claim starts its scan, and how many buckets it expects to need."""

    after: int
    buckets: int


class BucketState(NamedTuple):
    """The state row of a bucket."""

    revision: int
    holders: list[UUID]
    refused: int
    was_refused: bool
    paused_until: Any
    has_adjustments: bool
    of_current_limit: bool


def buckets(superuser: Superuser) -> list[tuple[int, int, str]]:
    """Return all buckets by name, as (bucket, limit, name)."""
    return superuser.execute(
        "select bucket, limit_id, name from trunkline_internal.bucket_names order by name"
    ).fetchall()


def open_in_queues(superuser: Superuser) -> list[tuple[int, int, str, Any]]:
    """Return the buckets and queues in which jobs may wait, as (bucket, limit, queue, closing)."""
    rows = superuser.execute(
        "select distinct bucket, limit_id, queue, closing from trunkline_internal.bucket_queues"
    )
    return sorted(rows.fetchall())


def open_buckets(superuser: Superuser) -> list[int]:
    """Return the buckets for which jobs may wait, in the order in which claims scan them."""
    rows = superuser.execute("select distinct bucket from trunkline_internal.bucket_queues")
    return sorted(bucket for (bucket,) in rows)


def close_empty_buckets(superuser: Superuser) -> None:
    """Close the buckets for which no job waits."""
    superuser.execute("select trunkline_internal.close_empty_buckets()")


def begin_turn(superuser: Superuser, limit: int) -> Turn:
    """Begin a scan as a claim of `limit` jobs does."""
    row = superuser.execute(
        "select after, buckets from trunkline_internal.begin_scan(p_limit => %s)", (limit,)
    ).fetchone()
    assert row is not None
    return Turn(*row)


def buckets_of_running(superuser: Superuser, jobs: Sequence[UUID]) -> set[int]:
    """Return the first buckets in which these running jobs are charged."""
    rows = superuser.execute(
        "select bucket_ids[1] from trunkline_internal.running where job_id = any(%s)", (list(jobs),)
    )
    return {bucket for (bucket,) in rows}


def most_running_per_bucket(superuser: Superuser) -> int:
    """Return how many jobs run in the bucket with the most running jobs."""
    row = superuser.execute(
        "select coalesce(max(n), 0) from (select count(*) as n"
        " from trunkline_internal.running group by bucket_ids[1]) as g"
    ).fetchone()
    assert row is not None
    jobs: int = row[0]
    return jobs


def waits_for_bucket(superuser: Superuser, job: UUID) -> bool:
    """True if a claim finds this waiting job by its bucket."""
    row = superuser.execute(
        "select bucket is not null from trunkline_internal.waiting where job_id = %s", (job,)
    ).fetchone()
    assert row is not None
    is_in_bucket: bool = row[0]
    return is_in_bucket


def names_of_waiting(superuser: Superuser, tenant: str) -> list[str]:
    """Return the name of the bucket of each waiting job of the tenant."""
    rows = superuser.execute(
        "select n.name from trunkline_internal.waiting as w"
        " join trunkline_internal.bucket_names as n on n.bucket = w.bucket and w.tenant = %s",
        (tenant,),
    )
    return [name for (name,) in rows]


def bucket_states(superuser: Superuser, limit: str) -> list[BucketState]:
    """Return the state rows of a limit without keys."""
    return [BucketState(*row) for row in superuser.execute(_STATES, (limit,))]


def cursor(superuser: Superuser, queue: str = "default", lane: int = 0) -> int:
    """Return the sequence number from which claims of the only bucket scan a lane."""
    row = superuser.execute(
        "select place -> 'lanes' -> %s ->> 0 from trunkline_internal.bucket_states",
        (f"{queue}/{lane}",),
    ).fetchone()
    assert row is not None
    return int(row[0])


def adjustments_ahead(superuser: Superuser) -> int:
    """Count the adjustments with a future time that no state row has applied."""
    row = superuser.execute(_AHEAD).fetchone()
    assert row is not None
    adjustments: int = row[0]
    return adjustments


def charged(superuser: Superuser) -> list[tuple[Any, ...]]:
    """Return the counts of every bucket, as (name, in use, four window sums, spent)."""
    return superuser.execute(_CHARGED).fetchall()


def room(superuser: Superuser) -> dict[str, tuple[int, list[UUID]]]:
    """Return the free slots and holders of all buckets, computed by the general code."""
    return _slots(superuser, _ROOM)


def free_slots(superuser: Superuser) -> dict[str, tuple[int, list[UUID]]]:
    """Return the same, computed by the shorter code for limits that only count slots."""
    return _slots(superuser, _FREE_SLOTS)


def _slots(superuser: Superuser, query: str) -> dict[str, tuple[int, list[UUID]]]:
    rows = superuser.execute(_OF_ALL.format(query=query).encode()).fetchall()
    return {name: (free, sorted(holders or [])) for name, free, holders in rows}


def counts_slots_only(superuser: Superuser, limit: str) -> bool:
    """True if claims use the shorter code for this limit."""
    row = superuser.execute(
        "select slots_only from trunkline_internal.limits where name = %s", (limit,)
    ).fetchone()
    assert row is not None
    slots_only: bool = row[0]
    return slots_only


def share_group(superuser: Superuser, limit: str) -> str | None:
    """Return the share group of a limit."""
    row = superuser.execute(
        "select share_group from trunkline_internal.limits where name = %s", (limit,)
    ).fetchone()
    assert row is not None
    group: str | None = row[0]
    return group


def remove_limit(superuser: Superuser, limit: str) -> None:
    """Make the limit impossible to find by its name, while its jobs still run."""
    superuser.execute(
        "update trunkline_internal.limits set name = 'renamed' where name = %s", (limit,)
    )
    superuser.execute("delete from trunkline_internal.bucket_names where name = %s", (limit,))
