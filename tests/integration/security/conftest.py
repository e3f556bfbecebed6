"""Two tenants with jobs in every state, and callers that act for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.support import databases
from tests.support.databases import Database
from tests.support.internals.rows import of_tenant
from tests.support.servers import Server
from trunkline import schema

Connection = psycopg.Connection[Any]

STATES = ("ready", "scheduled", "running", "completed", "cancelled", "dead")
_TABLES = (
    "waiting", "running", "finished", "dead", "events", "idempotency_keys", "unique_keys", "grants",
    "usage", "workers",
)  # fmt: skip


@dataclass(slots=True)
class Tenants:
    """One database with tenants a and b. What a does must not show in what b has."""

    database: Database
    looker: Connection
    # A role of the application's own, to which the schema tooling gave the tenants' list.
    role: str
    jobs: dict[str, dict[str, str]] = field(default_factory=dict)
    grants: dict[str, str] = field(default_factory=dict)

    def rows(self, tenant: str) -> dict[str, list[str]]:
        """Every row of a tenant, in every table that has tenants."""
        return {table: of_tenant(self.looker, table, tenant) for table in (*_TABLES, "schedules")}

    def narrowed(self, role: str, tenant: str = "a") -> Connection:
        """A member of one of our roles that acts for one tenant."""
        connection = self.database.connect(f"trunkline_{role}")
        connection.execute("select set_config('trunkline.tenant', %s, false)", (tenant,))
        return connection

    def bound(self, claims: str | None = '{"tenant": "a"}') -> Connection:
        """A tenant's own role, as a request of PostgREST runs."""
        connection = self.database.connect(self.role)
        if claims is not None:
            connection.execute("select set_config('request.jwt.claims', %s, false)", (claims,))
        return connection

    def fill(self, call: str) -> str:
        """Put ids where the text has <tenant state>."""
        for tenant, jobs in self.jobs.items():
            for state, job in jobs.items():
                call = call.replace(f"<{tenant} {state}>", f"'{job}'::uuid")
            call = call.replace(f"<{tenant} grant>", f"'{self.grants[tenant]}'::uuid")
        return call


@pytest.fixture(scope="module")
def tenants(server: Server, template: str) -> Iterator[Tenants]:
    with databases.fresh(server, template) as database:
        looker = database.superuser()
        # Roles belong to the server, which other tests use at the same time.
        role = f"app_{database.name[-12:]}"
        name = sql.Identifier(role)
        looker.execute(sql.SQL("create role {} login").format(name))
        schema.install(database.dsn, tenant_roles=[role])
        made = Tenants(database, looker, role)
        looker.execute("select trunkline.set_limit('theirs_{tenant}', '{\"breaker_failures\": 9}')")
        for tenant in "ab":
            with made.narrowed("worker", tenant) as worker:
                worker.execute(
                    "select trunkline.register_worker(%s, p_pulse_interval => '1 hour')",
                    (f"worker_{tenant}",),
                )
            made.jobs[tenant] = _populate(database, tenant)
            made.grants[tenant] = _grant(database, tenant, made.jobs[tenant]["running"])
        yield made
        looker.execute(sql.SQL("drop owned by {0}; drop role {0}").format(name))


def _populate(database: Database, tenant: str) -> dict[str, str]:
    operator = database.connect("trunkline_operator")
    worker = database.connect("trunkline_worker")

    def one(connection: Connection, query: str, *arguments: object) -> str:
        row = connection.execute(query.encode(), arguments or None).fetchone()
        assert row is not None
        return str(row[0])

    operator.execute("select trunkline.register_task('report', p_audit => true)")
    jobs = {}
    for state in STATES:
        jobs[state] = one(
            operator,
            "select job_id from trunkline.enqueue('report', p_tenant => %s, p_queue => %s,"
            " p_payload => jsonb_build_object('secret', %s::text), p_unique_key => %s,"
            " p_idempotency_key => %s, p_delay => %s)",
            tenant,
            f"{state}_{tenant}",
            f"of {tenant}",
            f"key of {state}",
            f"key of {state}",
            "1 day" if state == "scheduled" else "0",
        )
    for state in ("running", "completed", "dead"):
        claimed = one(
            worker,
            "select job_id from trunkline.claim(%s, array[%s])",
            f"worker_{tenant}",
            f"{state}_{tenant}",
        )
        assert claimed == jobs[state]
    arguments = (f"worker_{tenant}", jobs["completed"])
    worker.execute("select trunkline.complete(%s, array[%s::uuid], '{1}')", arguments)
    arguments = (f"worker_{tenant}", jobs["dead"])
    worker.execute(
        "select trunkline.fail(%s, array[%s::uuid], '{1}', p_retryable => '{f}')", arguments
    )
    operator.execute("select trunkline.cancel(%s)", (jobs["cancelled"],))
    operator.execute(
        "select trunkline.set_schedule(%s, '@yearly', 'report', p_tenant => %s)",
        (f"yearly_{tenant}", tenant),
    )
    operator.close()
    worker.close()
    return jobs


def _grant(database: Database, tenant: str, job: str) -> str:
    """One that the running job holds; another is settled, so that the books have a line."""
    limit = f"theirs_{tenant}"
    with database.connect("trunkline_operator") as operator:
        operator.execute(
            'select trunkline.set_limit(%s, \'{"tokens_per_minute": 100, "breaker_failures": 9}\')',
            (limit,),
        )
    with database.connect("trunkline_worker") as worker:
        ask = (
            "select grant_id::text from trunkline.acquire(%s, p_job => %s::uuid, p_attempt => 1)",
            (limit, job),
        )
        spent, held = (worker.execute(ask[0].encode(), ask[1]).fetchall()[0][0] for _ in range(2))
        worker.execute("select trunkline.settle(%s, '{\"tokens\": 7}')", (spent,))
    return str(held)
