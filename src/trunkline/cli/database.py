"""``trunkline db``: the embedded PostgreSQL server, and backups of any server."""

from __future__ import annotations

import sys

import click

from trunkline.cli.backup import backup, restore

__all__ = ["db"]


@click.group()
def db() -> None:
    """The embedded PostgreSQL server, which commands use unless you name another one.

    Its folder is TRUNKLINE_HOME, by default a data folder in your home. It starts on first use and
    stops when the last process that uses it ends. `backup` and `restore` work with any server.
    """


db.add_command(backup)
db.add_command(restore)
# Windows has no embedded server.
if sys.platform != "win32":
    from trunkline.cli.embedded_server import dsn, psql, reset, start, status, stop

    for _command in (dsn, psql, reset, start, status, stop):
        db.add_command(_command)
