"""What the server's metrics read besides the views for operators. Nothing here grows with jobs."""

from typing import NamedTuple

from trunkline.db.call import Call, rows_of

__all__ = [
    "Connections",
    "FinishedJobs",
    "SnapshotHolder",
    "TableHealth",
    "connections",
    "finished_jobs",
    "snapshot_holders",
    "table_health",
]


class Connections(NamedTuple):
    """How many sessions a login has, and how many the server takes in all."""

    role: str
    sessions: int
    most: int


class SnapshotHolder(NamedTuple):
    """A session, slot or prepared transaction that keeps dead rows from being removed."""

    kind: str
    name: str
    # How many transactions ago its snapshot began.
    age: int


class TableHealth(NamedTuple):
    """Rows and dead rows of one of our tables, as the statistics estimate them."""

    table: str
    live: int
    dead: int
    bytes: int


class FinishedJobs(NamedTuple):
    """Jobs of a task that ended in the last whole minute, with mean times in seconds."""

    task: str
    queue: str
    completed: int
    cancelled: int
    mean_wait: float | None
    mean_run: float | None


def connections() -> Call[list[Connections]]:
    """Return sessions by login."""
    return Call(
        "select coalesce(a.usename, '')::text, count(*),"
        " current_setting('max_connections')::integer"
        " from pg_catalog.pg_stat_activity as a where a.usename is not null"
        " group by a.usename order by 1",
        (),
        rows_of(Connections),
    )


def snapshot_holders() -> Call[list[SnapshotHolder]]:
    """Return what holds the oldest snapshots, the oldest first; ten at most."""
    return Call(
        "select h.kind, h.name, h.age from ("
        " select 'session' as kind, coalesce(nullif(a.application_name, ''), 'unnamed') as name,"
        " greatest(age(a.backend_xmin), age(a.backend_xid)) as age"
        " from pg_catalog.pg_stat_activity as a"
        " where coalesce(a.backend_xmin, a.backend_xid) is not null"
        " and a.pid <> pg_backend_pid()"
        " union all"
        " select 'slot', s.slot_name::text, greatest(age(s.xmin), age(s.catalog_xmin))"
        " from pg_catalog.pg_replication_slots as s"
        " where coalesce(s.xmin, s.catalog_xmin) is not null"
        " union all"
        " select 'prepared', p.gid, age(p.transaction) from pg_catalog.pg_prepared_xacts as p"
        ") as h order by h.age desc, h.name limit 10",
        (),
        rows_of(SnapshotHolder),
    )


def table_health() -> Call[list[TableHealth]]:
    """Return the estimates of our tables; partitions count for their table."""
    return Call(
        "select r.name, sum(r.live)::bigint, sum(r.dead)::bigint, sum(r.bytes)::bigint from ("
        " select coalesce(parent.relname, s.relname)::text as name, s.n_live_tup as live,"
        " s.n_dead_tup as dead, pg_total_relation_size(s.relid) as bytes"
        " from pg_catalog.pg_stat_all_tables as s"
        " left join pg_catalog.pg_inherits as i on i.inhrelid = s.relid"
        " left join pg_catalog.pg_class as parent on parent.oid = i.inhparent"
        " where s.schemaname = 'trunkline_internal'"
        ") as r group by r.name order by 1",
        (),
        rows_of(TableHealth),
    )


def finished_jobs() -> Call[list[FinishedJobs]]:
    """Return the throughput of the last whole minute."""
    return Call(
        "select t.task, t.queue, t.completed, t.cancelled,"
        " extract(epoch from t.mean_wait)::double precision,"
        " extract(epoch from t.mean_run)::double precision from trunkline.throughput as t"
        " where t.minute = date_trunc('minute', trunkline.clock(), 'UTC') - interval '1 minute'"
        " order by t.task, t.queue",
        (),
        rows_of(FinishedJobs),
    )
