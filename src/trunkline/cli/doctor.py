"""``trunkline doctor``: checks everything and reports what to do."""

from __future__ import annotations

import shutil
import sys
import textwrap

import click

from trunkline.cli import options
from trunkline.cli.diagnosis import diagnose
from trunkline.cli.output import clean, print_json

__all__ = ["doctor"]

_INDENT = 6

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(
    epilog=options.examples(
        "trunkline doctor",
        "trunkline doctor --dsn postgresql://me@pooler.example.org/shop",
        "trunkline doctor --json | jq '.checks[] | select(.level != \"ok\")'",
    )
)
@click.option(
    "--listen-dsn",
    metavar="URI",
    help="The direct connection that your workers use for LISTEN, if any.",
)
@options.with_options(options.dsn, options.as_json)
@click.pass_context
def doctor(ctx: click.Context, *, listen_dsn: str | None, dsn: str | None, as_json: bool) -> None:
    """Check connection, versions, schema, role, clock, settings, duties, workers, jobs and LISTEN.

    It changes nothing. Each line is ok, warn or fail; the exit code is 1 if any is fail.
    """
    failed = False
    findings = []
    for finding in diagnose(dsn, listen_dsn):
        failed = failed or finding.level == "fail"
        if as_json:
            findings.append(finding)
            continue
        level = click.style(f"{finding.level:<4}", fg=_COLOURS[finding.level], bold=True)
        click.echo(f"{level}  {_wrapped(clean(f'{finding.check}: {finding.message}'))}")
        if finding.hint:
            hint = _wrapped(clean(finding.hint), deeper=3)
            click.echo(f"      {click.style('->', fg='cyan')} {hint}")
    if as_json:
        print_json({"ok": not failed, "checks": findings})
    ctx.exit(1 if failed else 0)


def _wrapped(text: str, deeper: int = 0) -> str:
    """Wrap and indent text for a terminal; in a file each finding stays one line."""
    if not sys.stdout.isatty():
        return text
    indent = _INDENT + deeper
    room = max(20, shutil.get_terminal_size().columns - indent)
    return ("\n" + " " * indent).join(textwrap.wrap(text, room, break_on_hyphens=False))
