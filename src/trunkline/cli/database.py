"""``trunkline db``: the embedded PostgreSQL server."""

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli import options
from trunkline.cli.backup import backup, restore
from trunkline.errors import EmbeddedNotRunning

if TYPE_CHECKING:
    from trunkline.embedded.service import Status

__all__ = ["db"]


@click.group()
def db() -> None:
    """The embedded PostgreSQL server, which every command uses unless it is given another one.

    Its folder is TRUNKLINE_HOME, by default a data folder in your home. It starts on first use and
    stops when the last process that uses it leaves. `backup` and `restore` work with any server.
    """


for _command in (backup, restore):
    db.add_command(_command)


def _given() -> str | None:
    """The server of one's own that the other commands use instead of the embedded one."""
    return os.environ.get("TRUNKLINE_DSN")


def _warn_if_given() -> None:
    from trunkline.embedded import service  # noqa: PLC0415 - see main.py

    given = _given()
    if not given:
        return
    with contextlib.suppress(EmbeddedNotRunning):
        # Whoever exported the embedded server's own string means this one.
        if given in {service.dsn(tcp=False), service.dsn(tcp=True)}:
            return
    click.echo(
        "TRUNKLINE_DSN is set: the other commands use that server, not the embedded one", err=True
    )


@db.command(epilog=options.examples("trunkline db start"))
@options.as_json
def start(*, as_json: bool) -> None:
    """Start the server and keep it up until `trunkline db stop`."""
    from trunkline.embedded import service  # noqa: PLC0415 - see main.py

    _warn_if_given()
    state = service.pin()
    if as_json:
        click.echo(_document(state))
        return
    click.echo(f"PostgreSQL {state.version} is up, process {state.pid}, in {state.home}")


@db.command(epilog=options.examples("trunkline db stop", "trunkline db stop --force"))
@click.option("--force", is_flag=True, help="Stop it although other processes use it.")
@options.as_json
def stop(*, force: bool, as_json: bool) -> None:
    """Stop the server."""
    from trunkline.embedded import service  # noqa: PLC0415 - see main.py

    _warn_if_given()
    stopped = service.stop(force=force)
    if as_json:
        click.echo(json.dumps({"stopped": stopped}))
        return
    click.echo("Stopped" if stopped else "It was not running")


@db.command(epilog=options.examples("trunkline db reset", "trunkline db reset --yes"))
@click.option("--force", is_flag=True, help="Reset it although other processes use it.")
@options.with_options(options.yes, options.as_json)
def reset(*, force: bool, yes: bool, as_json: bool) -> None:
    """Move the data of the server aside: the next start is empty.

    The server is stopped first. Nothing is deleted: the old data stays in the same folder under a
    name with the time in it.
    """
    from trunkline.cli.actions import confirm  # noqa: PLC0415 - see main.py
    from trunkline.embedded import service  # noqa: PLC0415 - see main.py
    from trunkline.embedded.folder import Folder  # noqa: PLC0415 - see main.py

    _warn_if_given()
    folder = Folder()
    if folder.has_data:
        confirm(
            f"This stops the embedded server in {folder.home} and moves its data, with all jobs,"
            " aside. Go on?",
            yes=yes,
        )
    moved_to = service.reset(force=force)
    if as_json:
        click.echo(json.dumps({"moved_to": moved_to and str(moved_to)}))
    elif moved_to is None:
        click.echo(f"Nothing to reset: there is no data in {folder.home}")
    else:
        click.echo(f"Data moved to {moved_to}. The next start creates an empty server.")


@db.command(epilog=options.examples("trunkline db status", "trunkline db status --json"))
@options.as_json
@click.pass_context
def status(ctx: click.Context, *, as_json: bool) -> None:
    """Say whether the server runs; exit code 3 if it does not."""
    from trunkline.embedded import service  # noqa: PLC0415 - see main.py

    _warn_if_given()
    state = service.status()
    if as_json:
        click.echo(_document(state))
        ctx.exit(0 if state.running else 3)
    click.echo(f"status   {'running' if state.running else 'stopped'}")
    click.echo(f"folder   {state.home}")
    if state.version:
        click.echo(f"version  PostgreSQL {state.version}")
    if state.running:
        click.echo(f"process  {state.pid}")
        click.echo(f"port     {state.port} on 127.0.0.1")
        click.echo(f"kept up  {'yes, until `trunkline db stop`' if state.pinned else 'no'}")
        click.echo(f"in use   {'yes' if state.in_use else 'no'}")
    click.echo(f"log      {state.log}")
    ctx.exit(0 if state.running else 3)


@db.command(
    epilog=options.examples(
        "export TRUNKLINE_DSN=$(trunkline db dsn)", 'psql "$(trunkline db dsn)"'
    )
)
@click.option("--tcp", is_flag=True, help="Over 127.0.0.1, with the password in it.")
@options.as_json
@click.pass_context
def dsn(ctx: click.Context, *, tcp: bool, as_json: bool) -> None:
    """Print the connection string.

    Also when the server is down; then the exit code is 3. With TRUNKLINE_DSN set it is that one.
    """
    from trunkline.embedded import service  # noqa: PLC0415 - see main.py

    given = _given()
    found = given or service.dsn(tcp=tcp)
    click.echo(json.dumps({"dsn": found}) if as_json else found)
    if given:
        return
    if not service.status().running:
        click.echo("The server is not running; start it with: trunkline db start", err=True)
        ctx.exit(3)


@db.command(
    epilog=options.examples(
        "trunkline db psql", "trunkline db psql -c 'select * from trunkline.queues'"
    ),
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql; further arguments are passed on. The server is started if it is down.

    With TRUNKLINE_DSN set it opens on that server.
    """
    import signal  # noqa: PLC0415 - see main.py
    import subprocess  # noqa: PLC0415 - see main.py

    from trunkline.db.conninfo import for_program  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve  # noqa: PLC0415 - see main.py
    from trunkline.embedded import service  # noqa: PLC0415 - see main.py

    program = service.psql_program() or _on_path()
    # Quiet: the command itself names the server.
    with resolve(quiet=True) as target:
        # Ctrl-C is for psql, which cancels its query; a handler, unlike "ignore", is not inherited.
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
        # Not exec: the server must be left, and perhaps stopped, afterwards.
        shown, secrets = for_program(target)
        code = subprocess.run(
            [program, shown, *arguments], env=os.environ | secrets, check=False
        ).returncode
    click.get_current_context().exit(code)


def _document(state: "Status") -> str:
    from dataclasses import asdict  # noqa: PLC0415 - see main.py

    return json.dumps(asdict(state), default=str)


def _on_path() -> Path:
    found = shutil.which("psql", path=os.environ.get("PATH"))
    if found is None:
        raise click.ClickException("There is no psql, neither with the server nor on PATH")
    return Path(found)
