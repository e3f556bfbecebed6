"""``trunkline db backup`` and ``trunkline db restore``."""

from __future__ import annotations

from pathlib import Path

import click

from trunkline.cli import options

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

    Roles and memberships are saved, passwords are not. Your own tables in the database are saved
    too. Work may go on meanwhile: the file shows one moment. It is readable by you alone, and there
    only if the exit code is 0.
    """
    from trunkline import backup as tooling  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json, size  # noqa: PLC0415 - see main.py
    from trunkline.db.address import address  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_administered  # noqa: PLC0415 - see main.py

    with resolve_administered(dsn) as found:
        saved = tooling.save(found.dsn, file, force=force)
        name = address(found.known_as)
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
    click.echo(f"Saved {_total(saved.rows)} of {name} to {file} ({size(saved.size)})")
    if saved.program > saved.server:
        click.echo(
            f"pg_dump {saved.program} wrote it, since that of PostgreSQL {saved.server} was not "
            f"found: it can be restored into PostgreSQL {saved.program} or newer",
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

    All of it is loaded, or nothing. Roles that are missing are created without a login. Start
    workers afterwards: attempts that ran when the backup was made come back by their leases.
    """
    from trunkline import backup as tooling  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.address import address  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_administered  # noqa: PLC0415 - see main.py

    with resolve_administered(dsn) as found:
        restored = tooling.restore(found.dsn, file, installer=found.installer)
        name = address(found.known_as)
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
    click.echo(f"Restored {_total(restored.rows)} from {file} to {name}")
    if restored.created_roles:
        click.echo("Created the roles " + ", ".join(restored.created_roles))
    for role in restored.logins:
        click.echo(f"Role {role} has no login and no password yet: alter role {role} login;")
    for note in restored.notes:
        click.echo(f"Not done: {note}", err=True)


def _print_rows(rows: dict[str, int]) -> None:
    from trunkline.cli.output import amount  # noqa: PLC0415 - see main.py

    width = max(map(len, rows), default=0)
    number = max((len(amount(count)) for count in rows.values()), default=0)
    for table, count in rows.items():
        click.echo(f"{table:{width}}  {amount(count):>{number}}")


def _total(rows: dict[str, int]) -> str:
    from trunkline.cli.output import count  # noqa: PLC0415 - see main.py

    return f"{count(sum(rows.values()), 'row')} of {count(len(rows), 'table')}"
