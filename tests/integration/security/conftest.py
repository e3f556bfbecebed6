"""Two tenants with jobs in every state, and callers that act for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.support import databases
from tests.support.databases import Database
from tests.support.internals.rows import of_tenant
from tests.support.servers import Server
from trunkline import schema

Connection = psycopg.Connection[Any]

STATES = ("ready", "scheduled", "running", "completed", "cancelled", "dead")
_TABLES = (
    "waiting", "running", "finished", "dead", "events", "idempotency_keys", "unique_keys", "grants",
    "usage", "workers", "artifacts", "staged_artifacts", "storage_quotas", "storage_usage",
)  # fmt: skip


@dataclass(slots=True)
class Tenants:
    """One database with tenants a and b. Actions of a must not show in the rows of b."""

    database: Database
    looker: Connection
    # A role of the application, which was passed as a tenant role at the installation.
    role: str
    # The login that sets the claims of callers, as PostgREST does.
    gateway: str
    jobs: dict[str, dict[str, str]] = field(default_factory=dict)
    grants: dict[str, str] = field(default_factory=dict)
    workflows: dict[str, str] = field(default_factory=dict)
    # Ids of artifacts, the path of the upload that was begun, and that of a file to remove.
    artifacts: dict[str, dict[str, str]] = field(default_factory=dict)

    def rows(self, tenant: str) -> dict[str, list[str]]:
        """Return every row of a tenant, in every table that has tenants."""
        return {table: of_tenant(self.looker, table, tenant) for table in (*_TABLES, "schedules")}

    def narrowed(self, role: str, tenant: str = "a") -> Connection:
        """Return a connection with one of our roles that acts for one tenant."""
        connection = self.database.connect(f"trunkline_{role}")
        connection.execute("select set_config('trunkline.tenant', %s, false)", (tenant,))
        return connection

    def bound(self, claims: str | None = '{"tenant": "a"}') -> Connection:
        """Return a connection with a tenant role, as for a request of PostgREST."""
        connection = self.database.connect(self.gateway)
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(self.role)))
        if claims is not None:
            connection.execute("select set_config('request.jwt.claims', %s, false)", (claims,))
        return connection

    def fill(self, call: str) -> str:
        """Replace <tenant state> in the text with ids of jobs and grants."""
        for tenant, jobs in self.jobs.items():
            for state, job in jobs.items():
                call = call.replace(f"<{tenant} {state}>", f"'{job}'::uuid")
            for name, artifact in self.artifacts[tenant].items():
                kind = "text" if name in {"path", "gone"} else "uuid"
                call = call.replace(f"<{tenant} {name}>", f"'{artifact}'::{kind}")
            call = call.replace(f"<{tenant} workflow>", f"'{self.workflows[tenant]}'::uuid")
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
        gateway = f"gateway_{database.name[-12:]}"
        login = sql.Identifier(gateway)
        looker.execute(sql.SQL("create role {} login noinherit in role {}").format(login, name))
        schema.install(database.dsn, tenant_roles=[role])
        looker.execute("select trunkline.set_setting('authenticators', %s)", (gateway,))
        tenants = Tenants(database, looker, role, gateway)
        looker.execute("select trunkline.set_limit('theirs_{tenant}', '{\"breaker_failures\": 9}')")
        for tenant in "ab":
            with tenants.narrowed("worker", tenant) as worker:
                worker.execute(
                    "select trunkline.register_worker(%s, p_pulse_interval => '1 hour')",
                    (f"worker_{tenant}",),
                )
            tenants.artifacts[tenant] = {}
            tenants.jobs[tenant] = _populate(database, tenant, tenants.artifacts[tenant])
            tenants.workflows[tenant] = _workflow(database, tenant)
            tenants.grants[tenant] = _grant(database, tenant, tenants.jobs[tenant]["running"])
        yield tenants
        for dropped in (login, name):
            looker.execute(sql.SQL("drop owned by {0}; drop role {0}").format(dropped))


def _populate(database: Database, tenant: str, artifacts: dict[str, str]) -> dict[str, str]:
    operator = database.connect("trunkline_operator")
    worker = database.connect("trunkline_worker")

    def value(connection: Connection, query: str, *arguments: object) -> str:
        row = connection.execute(query.encode(), arguments or None).fetchone()
        assert row is not None
        return str(row[0])

    operator.execute("select trunkline.register_task('report', p_audit => true)")
    jobs = {}
    for state in STATES:
        jobs[state] = value(
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
        claimed = value(
            worker,
            "select job_id from trunkline.claim(%s, array[%s])",
            f"worker_{tenant}",
            f"{state}_{tenant}",
        )
        assert claimed == jobs[state]
    operator.execute("select trunkline.set_storage_quota(%s, 1000)", (tenant,))
    operator.execute("select trunkline.set_artifact_retention('song', '9 days')")
    _upload(worker, tenant, jobs, artifacts)
    arguments = (f"worker_{tenant}", jobs["completed"])
    worker.execute("select trunkline.complete(%s, array[%s::uuid], '{1}')", arguments)
    arguments = (f"worker_{tenant}", jobs["dead"])
    worker.execute(
        "select trunkline.fail(%s, array[%s::uuid], '{1}', p_retryable => '{f}')", arguments
    )
    operator.execute("select trunkline.delete_artifact(%s)", (artifacts["deleted"],))
    operator.execute("select trunkline.cancel(%s)", (jobs["cancelled"],))
    operator.execute(
        "select trunkline.set_schedule(%s, '@yearly', 'report', p_tenant => %s)",
        (f"yearly_{tenant}", tenant),
    )
    operator.close()
    worker.close()
    return jobs


def _upload(
    worker: Connection, tenant: str, jobs: dict[str, str], artifacts: dict[str, str]
) -> None:
    """Stage two files of the job that completes, and begin an upload of the running one."""
    for name, state in (("kept", "completed"), ("deleted", "completed"), ("begun", "running")):
        row = worker.execute(
            "select artifact_id::text, path"
            " from trunkline.begin_artifact(%s, %s, 1, %s, p_kind => 'song', p_bytes => 5)",
            (f"worker_{tenant}", jobs[state], f"{name}_{tenant}"),
        ).fetchone()
        assert row is not None
        artifacts[name], path = row
        if name == "begun":
            artifacts["path"] = path
            continue
        if name == "deleted":
            artifacts["gone"] = path
        worker.execute(
            "select trunkline.stage_artifact(%s, %s, 1, %s, 7, %s)",
            (f"worker_{tenant}", jobs[state], path, "0" * 64),
        )


def _workflow(database: Database, tenant: str) -> str:
    """Return a workflow without jobs, which is complete."""
    graph = {
        "name": f"flow_{tenant}",
        "tenant": tenant,
        "steps": [{"name": f"none_{tenant}", "task": "report", "items": []}],
    }
    with database.connect("trunkline_operator") as operator:
        row = operator.execute(
            "select workflow_id from trunkline.start_workflow(%s)", (Jsonb(graph),)
        ).fetchone()
    assert row is not None
    return str(row[0])


def _grant(database: Database, tenant: str, job: str) -> str:
    """Return a grant that the running job holds; settle another one for the usage ledger."""
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
        settled, open_grant = (
            worker.execute(ask[0].encode(), ask[1]).fetchall()[0][0] for _ in range(2)
        )
        worker.execute("select trunkline.settle(%s, '{\"tokens\": 7}')", (settled,))
    return str(open_grant)
