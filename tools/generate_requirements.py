"""Generates docs/requirements.md: each requirement, its text, and the tests that name it.

Their texts are in docs/requirements.toml. A test names requirements in its function name
(`test_cp_21_…`), in a docstring, or in the first line of an SQL file.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.markdown import cell, page, table

__all__ = ["ID", "Place", "System", "generate", "ids_in", "naming_tests", "problems", "register"]

_ROOT: Final = Path(__file__).parents[1]
_REGISTER: Final = _ROOT / "docs" / "requirements.toml"
_PAGE: Final = _ROOT / "docs" / "requirements.md"
_FOLDERS: Final = ("tests", "profiles/tests")
_INTRODUCTION: Final = """
This page lists the requirements of the systems built on Trunkline, and the tests that cover them. A
test names a requirement by its id. Add an id to [requirements.toml](requirements.toml) together
with its first test.
"""

# Ids of any system, not only registered ones: CP-21, CP-S06, overview 6.10.
ID: Final = re.compile(r"\b[A-Z]{2}-[A-Z]?\d{2,3}\b|\boverview \d+\.\d+\b")
_RANGE: Final = re.compile(r"\b([A-Z]{2})-(\d{2,3}) to \1-(\d{2,3})\b")
_NAME: Final = re.compile(r"test_([a-z]{2})_(s?\d{2,3})(?:_|$)")


@dataclass(frozen=True, slots=True)
class System:
    """A group of requirements. A finished one has a folder of tests that name all of them."""

    title: str
    ids: Mapping[str, str]
    tests: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A test, or a file of tests: its path in the repository and the name to show."""

    path: str
    name: str


def generate() -> dict[Path, str]:
    """Return the page; fail if the register and the tests do not name the same requirements."""
    systems = register()
    tests = naming_tests(_ROOT, systems)
    if found := problems(systems, tests):
        raise LookupError("\n".join(["docs/requirements.toml and the tests disagree", *found]))
    parts = [part for system in systems.values() for part in _part(system, tests)]
    return {_PAGE: page("Requirements", _INTRODUCTION, *parts)}


def register() -> dict[str, System]:
    """Return the systems of the register by the prefix of their ids."""
    content = tomllib.loads(_REGISTER.read_text(encoding="utf-8"))
    return {prefix: System(**system) for prefix, system in content.items()}


def naming_tests(root: Path, systems: Mapping[str, System]) -> dict[str, set[Place]]:
    """Return the tests that name each requirement, registered or not."""
    found: dict[str, set[Place]] = {}
    paths = (path for folder in _FOLDERS for path in (root / folder).rglob("*"))
    for path in paths:
        if path.suffix == ".sql":
            texts = _sql_texts(path)
        elif path.match("test_*.py"):
            texts = _python_texts(path, systems)
        else:
            continue
        for name, text in texts:
            for identifier in ids_in(text):
                test = Place(path.relative_to(root).as_posix(), name)
                found.setdefault(identifier, set()).add(test)
    return found


def ids_in(text: str) -> set[str]:
    """Return the ids in a text, with all those of a range such as CP-87 to CP-90."""
    found = set(ID.findall(text))
    for prefix, first, last in _RANGE.findall(text):
        found |= {f"{prefix}-{number:02}" for number in range(int(first), int(last) + 1)}
    return found


def problems(systems: Mapping[str, System], tests: Mapping[str, set[Place]]) -> list[str]:
    """Return the ids on which the register and the tests disagree, one line each."""
    known = {identifier for system in systems.values() for identifier in system.ids}
    found = [
        f"{identifier} is not registered, but named by {min(tests[identifier]).path}"
        for identifier in sorted(tests.keys() - known)
    ]
    for system in systems.values():
        folders = (system.tests,) if system.tests else _FOLDERS
        prefixes = tuple(f"{folder}/" for folder in folders)
        found += [
            f"{identifier} is registered, but not named by a test in {' or '.join(folders)}"
            for identifier in system.ids
            if not any(test.path.startswith(prefixes) for test in tests.get(identifier, ()))
        ]
    return found


def _sql_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of a pgTAP test and its first line."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    yield f"{path.parent.name}/{path.stem}", first


def _python_texts(path: Path, systems: Mapping[str, System]) -> Iterator[tuple[str, str]]:
    """Yield name and text of the module and of each test: the docstring, and the id in the name."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    yield path.name, ast.get_docstring(module) or ""
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""
            named = _NAME.match(node.name)
            # Only registered prefixes count, because "test_at_10_…" has the same form.
            if named and named[1].upper() in systems:
                yield node.name, f"{named[1]}-{named[2]}".upper()


def _part(system: System, tests: Mapping[str, set[Place]]) -> Sequence[str]:
    rows = [
        [identifier, cell(asked), "<br>".join(map(_link, sorted(tests[identifier])))]
        for identifier, asked in system.ids.items()
    ]
    return f"## {system.title}", table(["Id", "Requirement", "Tests"], rows)


def _link(test: Place) -> str:
    return f"[`{test.name}`](../{test.path})"
