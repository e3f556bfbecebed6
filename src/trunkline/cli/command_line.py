"""The command line that continues a command."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any

import click
from click.core import ParameterSource

__all__ = ["continued"]


def continued(ctx: click.Context, cursor: str) -> str:
    """Return the command line of this call with a cursor, to be copied.

    An age becomes a time, so that it means the same later. A connection string may have a
    password, so only its place is shown.
    """
    parts = [*ctx.command_path.split()]
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name == "cursor":
            continue
        values = (
            ctx.params[name] if parameter.multiple or parameter.nargs == -1 else [ctx.params[name]]
        )
        for value in values:
            parts += _words(parameter, value)
    return shlex.join([*parts, "--cursor", cursor])


def _words(parameter: click.Parameter, value: Any) -> list[str]:
    if not isinstance(parameter, click.Option):
        return [str(value)]
    if parameter.is_flag:
        return [parameter.opts[0] if value else parameter.secondary_opts[0]]
    return [parameter.opts[0], "URI" if parameter.name == "dsn" else _text(parameter, value)]


def _text(parameter: click.Parameter, value: Any) -> str:
    match value, parameter.type.name:
        case datetime(), _:
            return value.astimezone(UTC).isoformat()
        case _, "rate":
            return f"{value:g}/s" if value == float(f"{value:g}") else f"{value * 3600:.10g}/h"
        case _, "percentage":
            return f"{value * 100:.10g}%"
    return str(value)
