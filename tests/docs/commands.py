"""Whether a command line could be typed: read by the real commands, carried out by none."""

from __future__ import annotations

import click

from trunkline.cli.main import cli


def check(arguments: list[str]) -> click.Context:
    """Read `trunkline …` as the shell would pass it; raises click's error if it is wrong."""
    program, *rest = arguments
    assert program.rpartition("/")[2] == "trunkline", f"{program} is not the command"
    command: click.Command = cli
    context = click.Context(cli, info_name="trunkline")
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None, f"there is no command {name}"
        command = found
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=name, parent=context)
    return command.make_context(command.name, rest, parent=context)
