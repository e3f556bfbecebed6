"""The ``trunkline`` command.

Exit codes: 0 done; 1 refused or failed, with a message, a hint and a stable code on standard error,
or `schema verify` found differences; 2 wrong usage; 3 the embedded server is not running; 4 the
schema is newer than this package; 130 interrupted.
"""

import importlib
import sys
from typing import NoReturn

import click

from trunkline import __version__
from trunkline.errors import TrunklineError

__all__ = ["cli", "main"]

# Each group is imported when it is used: `trunkline --help` must not wait for the database driver.
_GROUPS = {
    "db": ("trunkline.cli.database:db", "The embedded PostgreSQL server."),
    "schema": ("trunkline.cli.schema:schema", "Install, upgrade and verify the schema."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(_GROUPS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in _GROUPS:
            return None
        module, _, name = _GROUPS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - a mistake in the table above
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_GROUPS.items())])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trunkline")
def cli() -> None:
    """A durable job queue in PostgreSQL."""


def main() -> NoReturn:
    """Run the command line and turn every refusal into a readable message and an exit code."""
    try:
        result = cli.main(standalone_mode=False)
    except TrunklineError as error:
        report(error)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted", err=True)
        sys.exit(130)
    # Without standalone mode click returns the code given to ctx.exit().
    sys.exit(result if isinstance(result, int) else 0)


def report(error: TrunklineError) -> None:
    """Write a refusal to standard error: message, hint, code."""
    click.echo(f"Error: {error}", err=True)
    if error.hint:
        click.echo(f"Hint: {error.hint}", err=True)
    click.echo(f"Code: {error.code}", err=True)
