"""``trunkline up``: server, schema and workers with one command."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import click

from trunkline import schema, sql
from trunkline.cli import options
from trunkline.cli.api_process import api_is_installed, beside
from trunkline.cli.connection import Session
from trunkline.cli.worker import worker_options, worker_settings
from trunkline.client import load
from trunkline.db.dsn import given as server_given
from trunkline.db.dsn import resolve
from trunkline.errors import ApiNotInstalled, SchemaMissing, SchemaOlderThanClient
from trunkline.telemetry import set_up_logging
from trunkline.worker.caretaker import run_duties
from trunkline.worker.entry import run_worker

__all__ = ["up"]


@click.command(
    epilog=options.examples(
        "trunkline up",
        "trunkline up shop.jobs:app",
        "trunkline up shop.jobs:app --processes 2 --dsn postgresql://me@db.example.org/shop",
    )
)
@click.argument("app", metavar="[APP]", required=False)
@worker_options
@click.option(
    "--api/--no-api",
    "with_api",
    default=None,
    help="Serve the HTTP API as well [default: if the extra `api` is installed].",
)
@click.pass_context
def up(
    ctx: click.Context,
    /,
    *,
    app: str | None,
    dsn: str | None,
    with_api: bool | None,
    **given: Any,
) -> None:
    """Start the embedded server, or use the given one, bring its schema up to date, run workers.

    With the extra `api` it also serves the HTTP API, at TRUNKLINE_API_HOST and TRUNKLINE_API_PORT.

    Without APP it keeps the server up and runs the duties, so that schedules enqueue their jobs
    and lost jobs are recovered. Ctrl-C, SIGTERM or SIGHUP ends it, and with it the embedded server
    unless others use it or `trunkline db start` keeps it up. It also ends, with exit code 4, when
    an upgrade makes the schema too new for this package.
    """
    set_up_logging(given["log_format"], given["log_level"])
    if with_api and not api_is_installed():
        raise ApiNotInstalled("The HTTP API needs packages that are not installed")
    embedded = None
    if app is not None:
        # Before anything is started: a wrong path is the most likely mistake.
        application = load(app)
        embedded = application.embedded
        dsn = application.dsn if dsn is None else dsn
    with resolve(dsn, embedded=embedded) as target:
        _bring_up_to_date(target)
        _show_how_to_connect(target, embedded=server_given(dsn) is None)
        with ExitStack() as stack:
            if api_is_installed() if with_api is None else with_api:
                if server_given(dsn) is None:
                    # Elsewhere an administrator decides which login acts for callers.
                    _let_it_act_for_callers(target)
                logs = {name: given[name] for name in ("log_format", "log_level")}
                stack.enter_context(beside(target, **logs))
                click.echo("  create a key    trunkline keys create NAME --role producer")
            if app is not None:
                click.echo(f"Running the jobs of {app}. Ctrl-C ends it.")
                code = run_worker(worker_settings(app, dsn=target, **given))
            else:
                click.echo(
                    "Running the duties. No APP was given, so no jobs are run. Ctrl-C ends it."
                )
                run_duties(target)
                code = 0
                click.echo("Ended.")
        ctx.exit(code)


def _bring_up_to_date(target: str) -> None:
    try:
        session = Session(target)
    except (SchemaMissing, SchemaOlderThanClient):
        version = 0
    else:
        version = schema.check_contract(session.connection).version
        session.close()
    # A schema that is up to date is left alone: other processes may be using it right now.
    if version >= len(sql.migrations()):
        click.echo(f"The schema is at version {version}.")
        return
    report = schema.install(target)
    if report.before:
        click.echo(f"Schema upgraded from version {report.before} to {report.version}.")
    else:
        click.echo(f"Schema installed at version {report.version}.")


def _let_it_act_for_callers(target: str) -> None:
    session = Session(target)
    login = session.connection.info.user
    listed = session.operator.settings.get("authenticators").value
    session.close()
    if login not in [name.strip() for name in listed.split(",")]:
        schema.install(target, authenticators=[login])


def _show_how_to_connect(target: str, *, embedded: bool) -> None:
    session = Session(target)
    info = session.connection.info
    version = info.parameter_status("server_version")
    place = f"{info.dbname} as {info.user} on {info.host}"
    session.close()
    if embedded:
        click.echo(f"PostgreSQL {version} is up: the embedded server.")
        click.echo("  connect with    trunkline db psql")
        click.echo("  or use          TRUNKLINE_DSN=$(trunkline db dsn)")
    else:
        click.echo(f"PostgreSQL {version} is up: {place}.")
    click.echo("  follow it with  trunkline jobs tail")
