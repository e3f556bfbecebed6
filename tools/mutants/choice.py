"""Chooses the tests of a mutation by folder names, the most likely first."""

from __future__ import annotations

import re
from pathlib import Path

from tools.mutants import callers
from tools.mutants.mutation import Mutation
from tools.mutants.project import Project

__all__ = ["test_files"]

# The most files from other folders, because all tests may mention a function.
_MOST_FURTHER = 15


def test_files(project: Project, mutation: Mutation) -> list[str]:
    """The test files of the domain: those with a matching name first, then those with a mention."""
    domain = project.domains[project.domain_of(mutation.path)]
    places = _places(project, [*domain.tests, *domain.further])
    words = _words(Path(mutation.path).stem)
    names = _names(mutation) | callers.public(project, mutation)
    mentions = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

    def rank(name: str) -> tuple[int, bool, int, str]:
        # Each function has a folder of SQL tests; other folders are whole domains.
        path = Path(name)
        named = _words(path.parent.name if path.suffix == ".sql" else path.stem)
        text = (project.root / name).read_text(encoding="utf-8")
        return -len(words & named), mentions.search(text) is None, places[name], name

    ranks = sorted(rank(name) for name in places)
    further = [
        name
        for shared, unmentioned, place, name in ranks
        if place >= len(domain.tests) and (shared or not unmentioned)
    ][:_MOST_FURTHER]
    return [name for *_, place, name in ranks if place < len(domain.tests) or name in further]


def _places(project: Project, folders: list[str]) -> dict[str, int]:
    """The test files in these folders, each with the number of the first folder that holds it."""
    places: dict[str, int] = {}
    for place, folder in enumerate(folders):
        for file in _files(project.root / folder):
            name = file.relative_to(project.root).as_posix()
            if name not in project.no_tests:
                places.setdefault(name, place)
    return places


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    python = folder.rglob("test_*.py")
    sql = (path for path in folder.rglob("*.sql") if "helpers" not in path.parts)
    return sorted([*python, *(path for path in sql if "sql" in path.parent.parts)])


def _words(name: str) -> set[str]:
    """The words of a name without plural endings: breaker_room and test_breakers share one."""
    parts = re.split(r"[/_.\W]+", name)
    return {word.rstrip("s") for word in parts if word not in {"test", "tests", "sql", ""}}


def _names(mutation: Mutation) -> set[str]:
    """The file, and the function or class around the mutation, as a test would write them."""
    scope = mutation.scope.split(".")
    names = {Path(mutation.path).stem, scope[-1], scope[0]}
    return names - {"", "trunkline", "trunkline_internal", "clinical", "executor", "__init__"}
