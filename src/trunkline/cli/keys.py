"""``trunkline keys``: keys with which programs sign in to the HTTP API."""

from __future__ import annotations

from datetime import datetime

import click

from trunkline.cli import options
from trunkline.cli.actions import change
from trunkline.cli.listing import list_rows
from trunkline.cli.output import clean, relative
from trunkline.cli.tables import Column
from trunkline.model import NewServiceKey, ServiceKey, ServiceKeyRole

__all__ = ["keys"]


@click.group()
def keys() -> None:
    """Keys of the HTTP API: create, list, revoke. Only a hash of a key is stored."""


@keys.command(
    epilog=options.examples(
        "trunkline keys create deploy --role producer",
        "trunkline keys create acme --role producer --tenant acme --expires 90d",
    )
)
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice(["operator", "producer", "reader"]),
    required=True,
    help="What its requests may do: everything, create and read jobs, or read.",
)
@click.option("--tenant", metavar="NAME", help="The only tenant for which it acts [default: all].")
@click.option(
    "--expires",
    type=options.DEADLINE,
    metavar="TIME",
    help="When it expires: a time, or a duration from now [default: never].",
)
@options.with_options(options.reason, options.dsn, options.as_json)
def create(
    *,
    name: str,
    role: ServiceKeyRole,
    tenant: str | None,
    expires: datetime | None,
    reason: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Create a key and print it. It is shown once: nobody can read it again."""

    def message(created: NewServiceKey) -> str:
        return (
            f"Service key {clean(name)} created with id {created.key_id}. It is shown only now:\n"
            f"{created.key}"
        )

    change(
        lambda operator: operator.keys.create(
            name, role, tenant=tenant, expires_at=expires, reason=reason
        ),
        message,
        lambda created: created,
        dsn=dsn,
        as_json=as_json,
    )


@keys.command("list", epilog=options.examples("trunkline keys list", "trunkline keys list --json"))
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List keys with their roles and when they were last used."""
    list_rows(
        dsn,
        lambda operator: operator.keys.list(),
        lambda now, _out: _columns(now),
        empty="No keys. Create one with: trunkline keys create NAME --role producer",
        as_json=as_json,
    )


@keys.command(epilog=options.examples("trunkline keys revoke 4f0x9kqz1m2a --reason leaked"))
@click.argument("key", metavar="ID")
@options.with_options(options.reason, options.dsn, options.as_json)
def revoke(*, key: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Revoke a key for good. Servers that have just used it accept it for five seconds more."""

    def message(revoked: bool) -> str:
        if not revoked:
            return f"Service key {clean(key)} was revoked before."
        return f"Service key {clean(key)} revoked. It is refused within five seconds."

    change(
        lambda operator: operator.keys.revoke(key, reason=reason),
        message,
        lambda revoked: {"key_id": key, "revoked": revoked},
        dsn=dsn,
        as_json=as_json,
    )


def _columns(now: datetime) -> list[Column[ServiceKey]]:
    def state(row: ServiceKey) -> str:
        if row.active:
            return "active"
        return "expired" if row.revoked_at is None else "revoked"

    return [
        Column("ID", lambda row: row.key_id),
        Column("NAME", lambda row: row.name, elastic=True),
        Column("ROLE", lambda row: row.role),
        Column("TENANT", lambda row: row.tenant or ""),
        Column("STATE", state, lambda row: "green" if row.active else "dim"),
        Column("LAST USED", lambda row: relative(row.last_used_at, now), rank=1),
        Column("EXPIRES", lambda row: relative(row.expires_at, now), rank=2),
        Column("CREATED", lambda row: relative(row.created_at, now), rank=3),
    ]
