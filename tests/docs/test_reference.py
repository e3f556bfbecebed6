"""The reference names everything that is public: names, commands, errors, variables."""

from __future__ import annotations

import importlib
import re
import shlex

import click
import pytest

import trunkline
from tests.docs.commands import check
from tests.docs.pages import DOCS, ROOT
from tools.generate_reference_cli import commands
from tools.generate_reference_errors import classes
from tools.generate_reference_python import MODULES
from trunkline.cli.main import cli
from trunkline.errors import HTTP_ERRORS

REFERENCE = DOCS / "reference"


def test_every_public_name_is_in_the_python_reference() -> None:
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert "Trunkline" in trunkline.__all__
    for module in MODULES:
        names = importlib.import_module(module).__all__
        missing = [name for name in names if name[0] != "_" and f"`{name}`" not in text]
        assert missing == [], module


def test_every_error_has_its_page() -> None:
    found = {path.stem for path in (REFERENCE / "errors").glob("*.md")} - {"README"}
    assert found == {one.code for one in classes()} | {one.code for one in HTTP_ERRORS}
    assert len(found) > 60


def test_every_error_has_a_hint() -> None:
    abstract = {one.code for one in classes() if any(one in other.__bases__ for other in classes())}
    silent = [
        one.code
        for one in classes()
        if one.code not in abstract
        and "## What to do"
        not in (REFERENCE / "errors" / f"{one.code}.md").read_text(encoding="utf-8")
    ]
    assert silent == []


LEAVES = [
    pytest.param(name, command, context, id=name)
    for name, command, context in commands()
    if not isinstance(command, click.Group)
]


def examples(name: str, command: click.Command, context: click.Context) -> list[str]:
    """How the end of a command's help calls it; what the shell makes of the rest is left out."""
    shown = command.get_help(context).partition("Examples:")[2]
    return re.findall(rf"\b({name}\b(?:'[^']*'|[^'|<>&)])*)", shown.replace("\n", " &\n"))


@pytest.mark.parametrize(("name", "command", "context"), LEAVES)
def test_every_command_is_in_the_reference_with_an_example(
    name: str, command: click.Command, context: click.Context
) -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert f"\n## {name}\n" in text
    shown = examples(name, command, context)
    assert shown, "its help shows no example"
    for line in shown:
        check([_filled(word) for word in shlex.split(line, comments=True)])


def _filled(word: str) -> str:
    """What an example leaves to its reader: the id of a job, a file with a payload."""
    if word == "ID":
        return "01890000-0000-7000-8000-000000000000"
    return "{}" if word.startswith("@") else word


def test_every_variable_of_the_environment_is_described() -> None:
    text = (REFERENCE / "environment.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "trunkline"
    sources = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"\bTRUNKLINE_[A-Z_]+\b", source)}
    assert "TRUNKLINE_DSN" in used
    assert {name for name in used if f"`{name}`" not in text} == set()


def test_the_root_command_is_walked() -> None:
    assert {name.split()[1] for name, _, _ in commands() if " " in name} >= {"db", "schema"}
    assert next(iter(commands()))[1] is cli
