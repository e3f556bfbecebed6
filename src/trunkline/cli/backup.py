"""``trunkline db backup`` and ``trunkline db restore``."""

from __future__ import annotations

from pathlib import Path

import click

from trunkline import backup as tooling
from trunkline.cli import options
from trunkline.cli.output import amount, count, print_json, size
from trunkline.db.address import address
from trunkline.db.dsn import resolve_administered

__all__ = ["backup", "restore"]

_file = click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))


@click.command(
    epilog=options.examples(
        "trunkline db backup jobs.backup",
        "trunkline db backup --dsn postgresql://me@db.example.org/shop shop.backup",
    )
)
@options.with_options(_file, options.dsn)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@options.as_json
def backup(*, file: Path, dsn: str | None, force: bool, as_json: bool) -> None:
    """Save the whole database, with the roles it needs, to FILE.

    It saves roles and memberships but no passwords, and your own tables in the database too. Work
    can continue: the file shows one moment. Only you can read the file, and it exists only if the
    exit code is 0.
    """
    with resolve_administered(dsn) as server:
        saved = tooling.save(server.dsn, file, force=force)
        name = address(server.known_as)
    if as_json:
        print_json(
            {
                "file": str(saved.file),
                "bytes": saved.size,
                "address": name,
                "server": saved.server,
                "program": saved.program,
                "rows": saved.rows,
            }
        )
        return
    _print_rows(saved.rows)
    click.echo(f"{_total(saved.rows)} of {name} saved to {file} ({size(saved.size)}).")
    if saved.program > saved.server:
        click.echo(
            f"pg_dump {saved.program} wrote the file, because pg_dump {saved.server} was not found."
            f" You can restore it into PostgreSQL {saved.program} or newer.",
            err=True,
        )


@click.command(
    epilog=options.examples(
        "trunkline db restore jobs.backup",
        "trunkline db restore --dsn postgresql://me@new.example.org/shop shop.backup",
    )
)
@options.with_options(_file, options.dsn, options.as_json)
def restore(*, file: Path, dsn: str | None, as_json: bool) -> None:
    """Load a backup into an empty database.

    It loads everything or nothing and creates missing roles without a login. Start workers
    afterwards: jobs that ran when the backup was taken run again when their leases have expired.
    """
    with resolve_administered(dsn) as server:
        restored = tooling.restore(server.dsn, file, installer=server.installer)
        name = address(server.known_as)
    if as_json:
        print_json(
            {
                "address": name,
                "rows": restored.rows,
                "created_roles": restored.created_roles,
                "logins": restored.logins,
                "notes": restored.notes,
            }
        )
        return
    _print_rows(restored.rows)
    click.echo(f"{_total(restored.rows)} restored from {file} to {name}.")
    if restored.created_roles:
        click.echo(f"Roles created: {', '.join(restored.created_roles)}")
    for role in restored.logins:
        click.echo(f"Role {role} has no login and no password yet. Run: alter role {role} login;")
    for note in restored.notes:
        click.echo(f"Not done: {note}", err=True)


def _print_rows(rows: dict[str, int]) -> None:
    width = max(map(len, rows), default=0)
    digits = max((len(amount(number)) for number in rows.values()), default=0)
    for table, number in rows.items():
        click.echo(f"{table:{width}}  {amount(number):>{digits}}")


def _total(rows: dict[str, int]) -> str:
    return f"{count(sum(rows.values()), 'row')} of {count(len(rows), 'table')}"
