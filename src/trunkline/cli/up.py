"""``trunkline up``: server, schema and workers with one command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options
from trunkline.cli.worker import wished, worker_options

# Imports of the driver wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.connection import Session
    from trunkline.model import DutyRun

__all__ = ["up"]

_TURN = 1.0


@click.command(
    epilog=options.examples(
        "trunkline up",
        "trunkline up shop.jobs:app",
        "trunkline up shop.jobs:app --processes 2 --dsn postgresql://me@db.example.org/shop",
    )
)
@click.argument("app", metavar="[APP]", required=False)
@worker_options
@click.pass_context
def up(ctx: click.Context, /, *, app: str | None, dsn: str | None, **given: Any) -> None:
    """Start the embedded server, or use the given one, bring its schema up to date, run workers.

    Without APP it keeps the server up and does the periodic duties, so that schedules run and
    lost jobs are found. Ctrl-C, SIGTERM or SIGHUP ends it, and with it the embedded server unless
    others use it or `trunkline db start` keeps it up. It also ends, with exit code 4, when the
    schema is upgraded beyond this package.
    """
    from trunkline.db.dsn import given as server_given  # noqa: PLC0415 - see above
    from trunkline.db.dsn import resolve  # noqa: PLC0415 - see above
    from trunkline.telemetry import set_up_logging  # noqa: PLC0415 - see above

    set_up_logging(given["log_format"], given["log_level"])
    embedded = None
    if app is not None:
        from trunkline.client import load  # noqa: PLC0415 - see above

        # Before anything is started: a wrong path is the most likely mistake.
        loaded = load(app)
        embedded = loaded.embedded
        dsn = loaded.dsn if dsn is None else dsn
    with resolve(dsn, embedded=embedded) as target:
        _bring_up_to_date(target)
        _tell_how_to_connect(target, embedded=server_given(dsn) is None)
        if app is None:
            _look_after(target)
            return
        from trunkline.worker.entry import run_worker  # noqa: PLC0415 - see above

        click.echo(f"Running the jobs of {app}; Ctrl-C ends it")
        ctx.exit(run_worker(wished(app, dsn=target, **given)))


def _bring_up_to_date(target: str) -> None:
    from trunkline import schema, sql  # noqa: PLC0415 - see above
    from trunkline.cli.connection import Session  # noqa: PLC0415 - see above
    from trunkline.db.calls import checks  # noqa: PLC0415 - see above
    from trunkline.errors import SchemaMissing, SchemaOlderThanClient  # noqa: PLC0415 - see above

    try:
        session = Session(target)
    except (SchemaMissing, SchemaOlderThanClient):
        found = 0
    else:
        found = session.ask(checks.identity()).schema_version
        session.close()
    # An existing schema of today's version is left alone: others may be using it right now.
    if found >= len(sql.migrations()):
        click.echo(f"The schema is at version {found}")
        return
    report = schema.install(target)
    what = (
        f"Upgraded the schema from version {report.before}"
        if report.before
        else "Installed the schema"
    )
    click.echo(f"{what}: now at version {report.version}")


def _tell_how_to_connect(target: str, *, embedded: bool) -> None:
    from trunkline.cli.connection import Session  # noqa: PLC0415 - see above

    session = Session(target)
    info = session.connection.info
    version = info.parameter_status("server_version")
    place = f"{info.dbname} as {info.user} on {info.host}"
    session.close()
    if embedded:
        click.echo(f"PostgreSQL {version} is up, the embedded one")
        click.echo("  connect with    trunkline db psql")
        click.echo("  or use          TRUNKLINE_DSN=$(trunkline db dsn)")
    else:
        click.echo(f"PostgreSQL {version} is up: {place}")
    click.echo("  follow it with  trunkline jobs tail")


def _look_after(target: str) -> None:
    """Do what is due every second until a signal comes."""
    from trunkline.cli.connection import Session  # noqa: PLC0415 - see above
    from trunkline.worker.stop_signals import stop_signals  # noqa: PLC0415 - see above

    ended = threading.Event()
    earlier = {number: signal.signal(number, _setter(ended)) for number in stop_signals()}
    session = Session(target)
    click.echo("Doing the periodic duties; no APP was given, so nobody runs jobs. Ctrl-C ends it")
    try:
        while not ended.is_set():
            _turn(session, ended)
            ended.wait(_TURN)
    finally:
        session.close()
        for number, handler in earlier.items():
            signal.signal(number, handler)
    click.echo("Ended")


def _setter(ended: threading.Event) -> Callable[[int, Any], None]:
    return lambda _number, _frame: ended.set()


def _turn(session: Session, ended: threading.Event) -> None:
    from trunkline.cli.output import clean  # noqa: PLC0415 - see above
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    def duties() -> Iterable[DutyRun]:
        _require_served(session)
        return session.ask(admin.run_duties())

    for run in session.persist(duties, until=ended.is_set) or ():
        if run.error:
            click.echo(f"The duty {run.duty} failed: {clean(run.error)}", err=True)


def _require_served(session: Session) -> None:
    """Refuse to go on under a schema that was upgraded beyond this package, as workers do."""
    from trunkline.db.calls import work  # noqa: PLC0415 - see above
    from trunkline.errors import SchemaNewerThanClient  # noqa: PLC0415 - see above
    from trunkline.schema.contract import newer_hint, require_served  # noqa: PLC0415 - see above

    try:
        require_served(session.ask(work.schema_version()))
    except SchemaNewerThanClient as error:
        error.hint = newer_hint(session.ask(work.schema_release()))
        raise
