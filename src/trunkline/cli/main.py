"""The ``trunkline`` command.

Exit codes: 0 done, also when Ctrl-C ends --watch, tail or up; 1 refused or failed, with a message,
a hint and a stable code on standard error, or a check found something (`schema verify`, `doctor`);
2 wrong usage, or an application that cannot be imported; 3 the embedded server is not running; 4
the schema is newer than this package; 130 interrupted.
"""

import importlib
import json
import logging
import os
import shutil
import sys
import textwrap
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from trunkline import __version__
from trunkline.errors import TrunklineError
from trunkline.telemetry import escaped_json, escaped_lines

__all__ = ["COMMANDS", "cli", "main", "report"]

# The only lazy imports of the command line: each group is imported when it is used, so that
# `trunkline --help` does not wait for the driver. A group imports what it needs at its top.
COMMANDS = {
    "api": ("trunkline.cli.api:api", "Serve the HTTP API."),
    "artifacts": ("trunkline.cli.artifacts:artifacts", "Files of jobs: list, get, link, delete."),
    "bench": ("trunkline.cli.bench:bench", "Measure the queue on your own database."),
    "breakers": ("trunkline.cli.breakers:breakers", "Breakers: list, set, reset, trip."),
    "completion": ("trunkline.cli.completion:completion", "Print the completion for a shell."),
    "db": ("trunkline.cli.database:db", "The embedded PostgreSQL server."),
    "dead": ("trunkline.cli.dead:dead", "Dead letters: list, group, edit, replay, discard."),
    "demo": ("trunkline.cli.demo:demo", "See it work: workers, retries, a killed worker."),
    "doctor": ("trunkline.cli.doctor:doctor", "Check everything and report what to do."),
    "duties": ("trunkline.cli.duties:duties", "Periodic maintenance: list, run, enable, disable."),
    "events": ("trunkline.cli.events:events", "Send events to jobs that wait for them."),
    "jobs": ("trunkline.cli.jobs:jobs", "Jobs: list, count, show, tail, enqueue, change, explain."),
    "keys": ("trunkline.cli.keys:keys", "Keys of the HTTP API: create, list, revoke."),
    "profile": ("trunkline.cli.profile:profile", "Profiles: complete systems as packages."),
    "limits": ("trunkline.cli.limits:limits", "Limits: list, set, show, pause, resume."),
    "log": ("trunkline.cli.log:log", "What operators changed, and why."),
    "queues": ("trunkline.cli.queues:queues", "Queues: list, pause, resume, limit, age."),
    "quotas": ("trunkline.cli.quotas:quotas", "Quotas and budgets: list, show, set, usage."),
    "scale": ("trunkline.cli.scale:scale", "How many workers are wanted, for autoscalers."),
    "schedules": ("trunkline.cli.schedules:schedules", "What is enqueued by the clock."),
    "schema": ("trunkline.cli.schema:schema", "Install, upgrade and verify the schema."),
    "settings": ("trunkline.cli.settings:settings", "Numbers and switches of the engine."),
    "store": ("trunkline.cli.store:store", "Where artifacts are: check, adopt, removals."),
    "tasks": ("trunkline.cli.tasks:tasks", "Registered tasks and their policies."),
    "up": ("trunkline.cli.up:up", "Server, schema and workers with one command."),
    "worker": ("trunkline.cli.worker:worker", "Run the jobs of an application."),
    "workflows": ("trunkline.cli.workflows:workflows", "Workflows: list, show, retry, rerun."),
    "workers": ("trunkline.cli.workers:workers", "Worker processes: list, drain."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        path, text = COMMANDS[cmd_name]
        module, _, name = path.partition(":")
        try:
            command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return _absent(cmd_name, text)
        assert isinstance(command, click.Command)  # noqa: S101 - a mistake in the table above
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of our output has closed it. Discard the rest here, because click would
            # report a failure.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(COMMANDS.items())])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # From the table: completion must be quick, and a group takes long to import.
        own = [
            CompletionItem(name, help=text)
            for name, (_, text) in sorted(COMMANDS.items())
            if name.startswith(incomplete)
        ]
        return own + click.Command.shell_complete(self, ctx, incomplete)


def _absent(name: str, text: str) -> click.Command:
    def refuse(**_arguments: Any) -> None:
        raise click.ClickException(f"The command {name} is not part of this installation")

    return click.Command(
        name,
        help=text,
        callback=refuse,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
    )


_EPILOG = """
\b
Begin with:
  trunkline up shop.jobs:app         server, schema and workers, until Ctrl-C
  trunkline jobs tail                follow what happens, like a log
  trunkline doctor                   check everything and report what to do
  trunkline jobs enqueue --help      every command shows examples

\b
Exit codes:
  0    done; also when Ctrl-C ends --watch, tail or up
  1    refused or failed, with a message, a hint and a code on standard error;
       or a check found something (schema verify, doctor)
  2    wrong usage, or an application that cannot be imported
  3    the embedded server is not running
  4    the schema is newer than this package
  130  interrupted
"""


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="trunkline")
def cli() -> None:
    """A durable job queue in PostgreSQL.

    Commands use the server in --dsn or TRUNKLINE_DSN, else an embedded one that starts by itself.
    They report its use on standard error unless TRUNKLINE_EMBEDDED is 1, and refuse it if it is 0.
    With --json they print JSON, errors and warnings included.
    """


def main() -> NoReturn:
    """Run the command line; report each error as a readable message and an exit code."""
    warnings = _JsonWarnings if _wants_json() else _TextWarnings
    logging.lastResort = warnings(logging.WARNING)
    try:
        # No colours if the environment asks for none (no-color.org); otherwise click decides.
        result = cli.main(prog_name="trunkline", standalone_mode=False, color=_colour())
    except TrunklineError as error:
        report(error)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        if _wants_json():
            _report_json(
                "wrong_usage" if error.exit_code == 2 else "failed", error.format_message()
            )
        else:
            error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        if _wants_json():
            _report_json("interrupted", "Interrupted")
        else:
            click.echo("Interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        refusal = _of_driver(error)
        if refusal is None:
            raise
        report(refusal)
        sys.exit(refusal.exit_code)
    # Without standalone mode click returns the code given to ctx.exit().
    sys.exit(result if isinstance(result, int) else 0)


class _JsonWarnings(logging.Handler):
    """Writes otherwise unhandled warnings as JSON, so that a program can parse every line."""

    def emit(self, record: logging.LogRecord) -> None:
        warning = {"message": record.getMessage(), "logger": record.name}
        click.echo(escaped_json(json.dumps({"warning": warning}, ensure_ascii=False)), err=True)


class _TextWarnings(logging.Handler):
    """Writes otherwise unhandled warnings as text, in a terminal without breaking words."""

    def emit(self, record: logging.LogRecord) -> None:
        text = escaped_lines(record.getMessage())
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns
            text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
        click.echo(text, err=True)


def _of_driver(error: Exception) -> TrunklineError | None:
    """Return our error for an unexpected driver error; None for any other error."""
    driver = sys.modules.get("psycopg")
    if driver is None or not isinstance(error, driver.Error):
        return None
    # Imported only here, where the driver is loaded already.
    translate = importlib.import_module("trunkline.db.translate")
    refusal: TrunklineError = translate.from_driver(error)
    return refusal


def report(error: TrunklineError) -> None:
    """Write an error to standard error: message, hint and code, or a JSON document."""
    if _wants_json():
        _report_json(error.code, str(error), error.hint, getattr(error, "detail", None))
        return
    lines = [f"{click.style('Error:', fg='red', bold=True)} {escaped_lines(str(error))}"]
    if error.hint:
        lines.append(f"{click.style('Hint:', fg='cyan')} {escaped_lines(error.hint)}")
    lines.append(click.style(f"Code: {error.code}", dim=True))
    if page := getattr(error, "page", ""):
        lines.append(click.style(f"Page: {escaped_lines(page)}", dim=True))
    click.echo("\n".join(lines), err=True, color=_colour())


def _colour() -> bool | None:
    return False if os.environ.get("NO_COLOR") else None


def _wants_json() -> bool:
    # Not the parsed option, because wrong usage is reported before options are parsed.
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def _report_json(
    code: str, message: str, hint: str = "", detail: dict[str, Any] | None = None
) -> None:
    error: dict[str, Any] = {"code": code, "message": message, "hint": hint or None}
    if detail:
        error["detail"] = detail
    document = json.dumps({"error": error}, ensure_ascii=False, default=str)
    click.echo(escaped_json(document), err=True)
