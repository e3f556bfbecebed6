"""The command line as lines: every command with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from tools.generate_reference_cli import commands

__all__ = ["lines"]


def lines() -> Iterator[str]:
    """Yield every command that help shows; parameters stay in the order of the help."""
    for name, command, _context in sorted(commands(), key=lambda found: found[0]):
        yield f"{name}: {'group' if isinstance(command, click.Group) else 'command'}"
        for parameter in command.params:
            yield f"{name}: {_parameter(parameter)}"


def _parameter(found: click.Parameter) -> str:
    """Describe an option or argument: its spellings, type, and what is not usual about it."""
    facts: list[str] = []
    if isinstance(found, click.Argument):
        facts.append(f"argument {found.human_readable_name} {_type(found.type)}")
    else:
        spellings = " / ".join([*found.opts, *found.secondary_opts])
        flag = getattr(found, "is_flag", False)
        facts.append(f"option {spellings}" + ("" if flag else f" {_type(found.type)}"))
    if found.required:
        facts.append("required")
    if found.nargs != 1:
        facts.append(f"{found.nargs} values" if found.nargs > 0 else "any number of values")
    if getattr(found, "multiple", False):
        facts.append("repeatable")
    if found.envvar:
        facts.append(f"variable {found.envvar}")
    if _shown(default := found.default):
        facts.append(f"default {default!r}")
    return ", ".join(facts)


def _type(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(str(choice) for choice in kind.choices)
    if isinstance(kind, click.IntRange | click.FloatRange):
        low = "" if kind.min is None else kind.min
        high = "" if kind.max is None else kind.max
        return f"{kind.name} {low}..{high}"
    return str(kind.name)


def _shown(default: Any) -> bool:
    """Leave out what means no default; newer releases of click have an object for it."""
    return not (default is None or default is False or callable(default)) and not repr(
        default
    ).startswith(("Sentinel.", "<"))
