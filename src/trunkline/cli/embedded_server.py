"""``trunkline db start``, ``stop``, ``reset``, ``status``, ``dsn`` and ``psql``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from dataclasses import asdict
from pathlib import Path

import click

from trunkline.cli import options
from trunkline.cli.actions import confirm
from trunkline.db.conninfo import for_program
from trunkline.db.dsn import DSN_VARIABLE, resolve
from trunkline.embedded import service
from trunkline.embedded.folder import Folder
from trunkline.embedded.service import Status
from trunkline.errors import EmbeddedNotRunning

__all__ = ["dsn", "psql", "reset", "start", "status", "stop"]


def _given() -> str | None:
    """Return your own server, which the other commands use instead of the embedded one."""
    return os.environ.get(DSN_VARIABLE)


def _warn_if_given() -> None:
    given = _given()
    if not given:
        return
    with contextlib.suppress(EmbeddedNotRunning):
        # The variable may name the embedded server itself.
        if given in {service.dsn(tcp=False), service.dsn(tcp=True)}:
            return
    click.echo(
        f"{DSN_VARIABLE} is set: the other commands use that server, not the embedded one.",
        err=True,
    )


@click.command(epilog=options.examples("trunkline db start"))
@options.as_json
def start(*, as_json: bool) -> None:
    """Start the server and keep it up until `trunkline db stop`."""
    _warn_if_given()
    state = service.pin()
    if as_json:
        click.echo(_document(state))
        return
    click.echo(f"PostgreSQL {state.version} is up in {state.home}, process {state.pid}.")


@click.command(epilog=options.examples("trunkline db stop", "trunkline db stop --force"))
@click.option("--force", is_flag=True, help="Stop it even if other processes use it.")
@options.as_json
def stop(*, force: bool, as_json: bool) -> None:
    """Stop the server."""
    _warn_if_given()
    stopped = service.stop(force=force)
    if as_json:
        click.echo(json.dumps({"stopped": stopped}))
        return
    click.echo("Server stopped." if stopped else "The server was not running.")


@click.command(epilog=options.examples("trunkline db reset", "trunkline db reset --yes"))
@click.option("--force", is_flag=True, help="Reset it even if other processes use it.")
@options.with_options(options.yes, options.as_json)
def reset(*, force: bool, yes: bool, as_json: bool) -> None:
    """Move the data of the server aside. The next start creates an empty server.

    It stops the server first and deletes nothing: the old data stays in the same folder, under a
    name that has the time in it.
    """
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
        click.echo(f"Nothing to reset: there is no data in {folder.home}.")
    else:
        click.echo(f"Data moved to {moved_to}. The next start creates an empty server.")


@click.command(epilog=options.examples("trunkline db status", "trunkline db status --json"))
@options.as_json
@click.pass_context
def status(ctx: click.Context, *, as_json: bool) -> None:
    """Show whether the server is running. The exit code is 3 if it is not."""
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


@click.command(
    epilog=options.examples(
        "export TRUNKLINE_DSN=$(trunkline db dsn)", 'psql "$(trunkline db dsn)"'
    )
)
@click.option("--tcp", is_flag=True, help="For TCP on 127.0.0.1, with the password in it.")
@options.as_json
@click.pass_context
def dsn(ctx: click.Context, *, tcp: bool, as_json: bool) -> None:
    """Print the connection string.

    If the server is down, it prints it too and the exit code is 3. If TRUNKLINE_DSN is set, it
    prints that.
    """
    given = _given()
    string = given or service.dsn(tcp=tcp)
    click.echo(json.dumps({"dsn": string}) if as_json else string)
    if given:
        return
    if not service.status().running:
        click.echo("The server is not running. Start it with: trunkline db start", err=True)
        ctx.exit(3)


@click.command(
    epilog=options.examples(
        "trunkline db psql", "trunkline db psql -c 'select * from trunkline.queues'"
    ),
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql with further arguments. It starts the server if it is down.

    If TRUNKLINE_DSN is set, psql connects to that server.
    """
    program = service.psql_program() or _on_path()
    # Quiet: the command itself names the server.
    with resolve(quiet=True) as target:
        # Ctrl-C is for psql, which cancels its query. A child inherits "ignore" but not a handler.
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
        # Not exec, because this process may have to stop the server afterwards.
        shown, secrets = for_program(target)
        code = subprocess.run(
            [program, shown, *arguments], env=os.environ | secrets, check=False
        ).returncode
    click.get_current_context().exit(code)


def _document(state: Status) -> str:
    return json.dumps(asdict(state), default=str)


def _on_path() -> Path:
    program = shutil.which("psql", path=os.environ.get("PATH"))
    if program is None:
        raise click.ClickException(
            "psql was not found, neither with the embedded server nor on PATH. Install it, for"
            " example with: apt install postgresql-client"
        )
    return Path(program)
