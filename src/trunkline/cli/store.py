"""``trunkline store``: the folder or bucket that artifacts are in."""

from __future__ import annotations

import click

from trunkline.artifacts import LocalStore, Store, open_store
from trunkline.artifacts.checks import check_store
from trunkline.artifacts.marker import adopt as mark
from trunkline.cli import options
from trunkline.cli.actions import confirm
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import clean, print_json, relative
from trunkline.cli.tables import Column
from trunkline.model import FileRemoval

__all__ = ["store"]

_address = click.option(
    "--store",
    "address",
    metavar="ADDRESS",
    help="The store, such as file:///folder or s3://bucket/prefix [default: TRUNKLINE_STORE].",
)


@click.group()
def store() -> None:
    """The store of artifacts: check, adopt, removals, rotate-secret."""


@store.command(
    epilog=options.examples("trunkline store check", "trunkline store check --store s3://files")
)
@options.with_options(_address, options.as_json)
@click.pass_context
def check(context: click.Context, *, address: str | None, as_json: bool) -> None:
    """Try every operation of the store. The exit code is 1 if one of them fails."""
    found = open_store(address)
    failed = 0
    results = []
    if not as_json:
        click.echo(f"Store {clean(found.address)}")
    for result in check_store(found):
        failed += not result.ok
        results.append(result)
        if not as_json:
            mark_text = (
                click.style("ok  ", fg="green") if result.ok else click.style("fail", fg="red")
            )
            click.echo(f"  {mark_text}  {result.check}: {clean(result.message)}")
    if as_json:
        print_json({"store": found.address, "ok": not failed, "checks": results})
    context.exit(1 if failed else 0)


@store.command(epilog=options.examples("trunkline store adopt --yes"))
@options.with_options(_address, options.yes, options.dsn, options.as_json)
def adopt(*, address: str | None, yes: bool, dsn: str | None, as_json: bool) -> None:
    """Let this database delete unknown files in it.

    Do this after you have moved to another database. Files that only the old one knows are then
    deleted after the time in the setting orphan_age.
    """
    found = open_store(address)
    confirm(f"Let this database delete files in {found.address} that it does not know?", yes=yes)
    with opened(dsn) as session:
        installation = session.operator.artifacts.installation()
    mark(found, installation)
    if as_json:
        print_json({"store": found.address, "installation": installation})
    else:
        click.echo(f"Store {clean(found.address)} adopted by this database.")


@store.command(epilog=options.examples("trunkline store removals"))
@options.with_options(options.dsn, options.as_json)
def removals(*, dsn: str | None, as_json: bool) -> None:
    """List files that wait to be deleted."""
    list_rows(
        dsn,
        lambda operator: operator.artifacts.removals(),
        lambda now, _out: [
            Column[FileRemoval]("FILE", lambda row: row.path, elastic=True),
            Column("WHY", lambda row: row.reason, rank=1),
            Column("DUE", lambda row: relative(row.due_at, now), rank=2),
            Column("TRIES", lambda row: str(row.tries), right=True, rank=3),
            Column("ERROR", lambda row: row.last_error or "", "red", elastic=True, rank=1),
        ],
        empty="No file waits to be deleted.",
        as_json=as_json,
    )


@store.command("rotate-secret", epilog=options.examples("trunkline store rotate-secret"))
@options.with_options(_address, options.as_json)
def rotate_secret(*, address: str | None, as_json: bool) -> None:
    """Sign new links with a new secret.

    For a store in a folder. Links that were signed with the last one stay valid.
    """
    found = _local(open_store(address))
    found.secrets.rotate()
    names = list(found.secrets.active())
    if as_json:
        print_json({"store": found.address, "active": names})
    else:
        click.echo(
            f"Secret {names[0]} created. Links signed with the last one work until they expire."
        )


def _local(found: Store) -> LocalStore:
    if not isinstance(found, LocalStore):
        raise click.UsageError("A bucket signs links with its credentials; rotate those.")
    return found
