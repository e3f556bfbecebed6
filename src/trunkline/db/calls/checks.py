"""What `trunkline doctor` asks a server."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple

from trunkline.db.call import Call, nothing, one, rows_of

__all__ = [
    "LISTEN",
    "HealthCheck",
    "Identity",
    "TableSize",
    "Unserved",
    "health",
    "identity",
    "notify",
    "table_sizes",
    "unserved",
]

# Statements without an answer, which a Call cannot be.
LISTEN: Final[LiteralString] = "listen trunkline_doctor"


class Identity(NamedTuple):
    """Who this connection is, where, and what it may do."""

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


class HealthCheck(NamedTuple):
    """One line of trunkline.health()."""

    check: str
    ok: bool
    detail: Mapping[str, Any] | None


class Unserved(NamedTuple):
    """Ready jobs that no living worker takes."""

    queue: str
    task: str
    jobs: int


class TableSize(NamedTuple):
    """One table of ours with its partitions, indexes and toast."""

    table: str
    bytes: int
    partitions: int


def identity() -> Call[Identity]:
    """Everything about the connection in one look; the time last, so that it is fresh."""
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


def health() -> Call[list[HealthCheck]]:
    """The engine's own checks."""
    return Call(
        'select "check", ok, detail from trunkline.health() order by "check"',
        (),
        rows_of(HealthCheck),
    )


def unserved() -> Call[list[Unserved]]:
    """Ready jobs by queue and task that no living worker serves, among the next 100,000."""
    return Call(
        "select r.queue, r.task, count(*) from ("
        "  select j.queue, j.task from trunkline.jobs as j where j.state = 'ready' limit 100000"
        " ) as r where not exists ("
        "  select from trunkline.workers as w where w.alive and w.state = 'active'"
        "  and (w.queues is null or r.queue = any(w.queues))"
        "  and (w.tasks is null or r.task = any(w.tasks))"
        " ) group by r.queue, r.task order by count(*) desc, r.queue, r.task",
        (),
        rows_of(Unserved),
    )


def table_sizes() -> Call[list[TableSize]]:
    """Our tables, largest first; any role may ask."""
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
    """Send a notification to whoever listens as LISTEN says."""
    return Call("select pg_notify('trunkline_doctor', %s)", (nonce,), nothing)
