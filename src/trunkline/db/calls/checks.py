"""The questions of `trunkline doctor` to a server."""

from datetime import datetime
from typing import Final, LiteralString, NamedTuple

from trunkline.db.call import Call, nothing, one, rows_of
from trunkline.model import HealthCheck

__all__ = [
    "LISTEN",
    "Identity",
    "ReadyTask",
    "TableSize",
    "health",
    "identity",
    "notify",
    "ready_tasks",
    "table_sizes",
]

# A Call must return rows, and this statement returns none.
LISTEN: Final[LiteralString] = "listen trunkline_doctor"


class Identity(NamedTuple):
    """The login, the server and the rights of this connection."""

    user: str
    database: str
    server_version: str
    server_version_num: int
    in_recovery: bool
    superuser: bool
    roles: list[str]
    tenant: str | None
    schema_version: int
    contract: int
    oldest_contract: int
    clock: datetime


class ReadyTask(NamedTuple):
    """The ready jobs of a task in a queue, and whether a live worker takes them."""

    queue: str
    task: str
    jobs: int
    served: bool
    # At most this many ready jobs of each queue are counted; `more` is true if it has others.
    counted_up_to: int
    more: bool


class TableSize(NamedTuple):
    """The size of one of our tables with its partitions, indexes and toast."""

    table: str
    bytes: int
    partitions: int


def identity() -> Call[Identity]:
    """Return the identity of this connection; the clock is read last, so that it is accurate."""
    return Call(
        "select session_user::text, current_database()::text, current_setting('server_version'),"
        " current_setting('server_version_num')::integer, pg_is_in_recovery(),"
        " (select r.rolsuper from pg_catalog.pg_roles as r where r.rolname = session_user),"
        " array(select r.rolname::text from pg_catalog.pg_roles as r"
        "  where r.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',"
        "   'trunkline_operator', 'trunkline_reader')"
        "  and pg_has_role(session_user, r.oid, 'usage') order by r.rolname),"
        " trunkline.tenant_scope(), v.version, v.contract, v.oldest_contract, clock_timestamp()"
        " from trunkline.schema_version() as v",
        (),
        one(Identity),
    )


class SessionSetting(NamedTuple):
    """A session setting without our overrides, and its source."""

    name: str
    value: str
    role: str | None
    database: str | None
    source: str


def session_settings() -> Call[list[SessionSetting]]:
    """Return the settings that can stop work, as a new session of this role gets them."""
    return Call(
        "select s.name, s.reset_val, d.role, d.database, d.source"
        " from pg_catalog.pg_settings as s"
        " cross join lateral ("
        "  select r.rolname::text as role, b.datname::text as database, 'catalogue' as source,"
        "   (d.setrole <> 0)::integer * 2 + (d.setdatabase <> 0)::integer as rank"
        "  from pg_catalog.pg_db_role_setting as d"
        "  left join pg_catalog.pg_roles as r on r.oid = d.setrole"
        "  left join pg_catalog.pg_database as b on b.oid = d.setdatabase"
        "  where (d.setrole = 0 or r.rolname = session_user)"
        "   and (d.setdatabase = 0 or b.datname = current_database())"
        "   and exists (select from unnest(d.setconfig) as c (entry)"
        "    where lower(split_part(c.entry, '=', 1)) = s.name)"
        "  union all select null, null, 'server', -1"
        "  order by 4 desc limit 1"
        " ) as d"
        " where s.name in ('default_transaction_isolation', 'default_transaction_read_only',"
        "  'statement_timeout', 'lock_timeout', 'row_security', 'transaction_timeout',"
        "  'idle_session_timeout', 'idle_in_transaction_session_timeout')"
        " order by s.name",
        (),
        rows_of(SessionSetting),
    )


def health() -> Call[list[HealthCheck]]:
    """Return the engine's own checks."""
    return Call(
        'select "check", ok, detail from trunkline.health() order by "check"',
        (),
        rows_of(HealthCheck),
    )


def ready_tasks() -> Call[list[ReadyTask]]:
    """Count the first ready jobs of each queue by task, most first."""
    return Call(
        "select s.queue, t.task, t.jobs::bigint, exists ("
        "  select from trunkline.workers as w where w.alive and w.state = 'active'"
        "  and (w.queues is null or s.queue = any(w.queues))"
        "  and (w.tasks is null or t.task = any(w.tasks))"
        " ), s.counted_up_to, s.ready >= s.counted_up_to"
        " from trunkline.queue_sizes() as s"
        " cross join lateral jsonb_each_text(s.ready_tasks) as t (task, jobs)"
        " order by t.jobs::bigint desc, s.queue, t.task",
        (),
        rows_of(ReadyTask),
    )


def table_sizes() -> Call[list[TableSize]]:
    """Return the sizes of our tables, largest first. Any role may call this."""
    return Call(
        "select t.relname::text, sum(pg_total_relation_size(coalesce(p.relid, t.oid)))::bigint,"
        " count(*) filter (where p.isleaf and p.level > 0)"
        " from pg_catalog.pg_class as t"
        " left join lateral pg_partition_tree(t.oid) as p on true"
        " where t.relnamespace = to_regnamespace('trunkline_internal')"
        " and t.relkind in ('r', 'p') and not t.relispartition"
        " group by t.relname order by 2 desc, 1",
        (),
        rows_of(TableSize),
    )


def notify(nonce: str) -> Call[None]:
    """Send a notification on the channel of LISTEN."""
    return Call("select pg_notify('trunkline_doctor', %s)", (nonce,), nothing)
