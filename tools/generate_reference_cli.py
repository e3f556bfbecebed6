"""Generates docs/reference/cli.md from the help of each command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tools.markdown import REFERENCE, cell, code, fence, page, table
from trunkline.cli.main import cli

__all__ = ["commands", "generate"]

_WIDTH = 90
_INTRODUCTION = """
This page has the `--help` text of each command. Commands that print tables print JSON with
`--json`. [Exit codes](exit-codes.md) are stable.
"""


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command and group with its full name, groups before their commands."""
    return _walk(click.Context(cli, info_name="trunkline", **cli.context_settings))


def generate() -> dict[Path, str | None]:
    """Return the page and the text it should have."""
    found = list(commands())
    rows = [
        [f"[{code(name)}](#{name.replace(' ', '-')})", cell(command.get_short_help_str(limit=200))]
        for name, command, _ in found
        if not isinstance(command, click.Group)
    ]
    parts = [table(["command", "what it does"], rows)]
    for name, command, context in found:
        parts += [f"## {name}", fence(command.get_help(context))]
    return {REFERENCE / "cli.md": page("Command line", _INTRODUCTION, *parts)}


def _walk(context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    command = context.command
    # A fixed width, independent of the current terminal.
    context.terminal_width = _WIDTH
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is None:
                raise LookupError(f"{context.command_path} lists {name} but has no such command")
            if not child.hidden:
                yield from _walk(
                    click.Context(child, info_name=name, parent=context, **child.context_settings)
                )
