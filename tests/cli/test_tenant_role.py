"""The command line with a role of tenants, as `schema install --tenant-role` makes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID

import pytest
from psycopg import sql

from tests.cli.driving import Cli
from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline.operate import SyncOperator

# What earlier releases did not grant to roles of tenants.
_LATER: Final = (
    "count_jobs",
    "find_jobs",
    "job_steps",
    "resolve_job",
    "schema_version",
    "search_jobs",
)


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    # Roles belong to the server, which other tests use at the same time.
    name = f"app_{database.name[-12:]}"
    admin = database.superuser()
    admin.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
    yield name
    admin.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(name)))


@pytest.fixture
def jobs(calls: Calls) -> dict[str, UUID]:
    """A job of each tenant."""
    return {tenant: calls.enqueue("send", tenant=tenant).job_id for tenant in "ab"}


def of_tenant(database: Database, role: str, tenant: str) -> Cli:
    login = database.superuser_dsn.replace("//postgres", f"//{role}", 1)
    return Cli(f"{login}&options=-ctrunkline.tenant%3D{tenant}")


@pytest.fixture(autouse=True)
def authenticator(database: Database, role: str) -> None:
    """Let the role itself set a tenant: it logs in for tests of the command line only."""
    operator = database.connect("trunkline_operator")
    operator.execute("select trunkline.set_setting('authenticators', %s)", (role,))


def listed(cli: Cli) -> list[str]:
    return [job["job_id"] for job in cli.json("jobs", "list")]


def test_a_role_of_tenants_lists_shows_and_cancels_its_jobs(
    database: Database, role: str, cli: Cli, jobs: dict[str, UUID]
) -> None:
    cli.text("schema", "install", "--tenant-role", role)
    tenant = of_tenant(database, role, "a")
    assert listed(tenant) == [str(jobs["a"])]
    assert tenant.json("jobs", "show", jobs["a"])["tenant"] == "a"
    tenant.text("jobs", "cancel", jobs["a"])
    assert tenant.json("jobs", "show", jobs["a"])["state"] == "cancelled"


def test_an_upgrade_gives_a_role_of_tenants_what_the_command_line_needs(
    database: Database, role: str, cli: Cli, jobs: dict[str, UUID]
) -> None:
    cli.text("schema", "install", "--tenant-role", role)
    # As earlier releases left it.
    database.superuser().execute(
        sql.SQL("revoke execute on function {} from {}").format(
            sql.SQL(", ").join(sql.SQL(f"trunkline.{name}") for name in _LATER),
            sql.Identifier(role),
        )
    )
    cli.text("schema", "upgrade")
    with SyncOperator(of_tenant(database, role, "b").dsn) as operator:
        [job] = operator.jobs.find().jobs
        assert job.id == jobs["b"]
        assert sum(count.jobs for count in operator.jobs.count()) == 1
        assert operator.jobs.resolve(str(job.id)[:30]) == job.id
    assert listed(of_tenant(database, role, "b")) == [str(jobs["b"])]
    assert cli.run("schema", "verify").exit_code == 0
