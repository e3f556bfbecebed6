"""Finds the public SQL functions that reach an internal one, because tests call those."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tools.mutants.mutation import Mutation
from tools.mutants.project import Project

__all__ = ["public"]

_CALL = re.compile(r"\b(trunkline(?:_internal)?)\.([a-z_0-9]+)\s*\(")
# With more callers, a helper gives no hint where it is tested.
_MOST = 4


def public(project: Project, mutation: Mutation) -> set[str]:
    """The names of the public functions that reach the mutated one, if they are few."""
    schema, _, name = mutation.scope.partition(".")
    if schema != "trunkline_internal":
        return set()
    users = _users(project.root)
    found: set[str] = set()
    waiting, seen = [name], {name}
    while waiting:
        for user in users.get(waiting.pop(), set()) - seen:
            seen.add(user)
            (found.add if user in users["/public"] else waiting.append)(user)
    return found if len(found) <= _MOST else set()


@cache
def _users(root: Path) -> dict[str, set[str]]:
    """The callers of each function; under "/public" the names of the public functions."""
    users: dict[str, set[str]] = {"/public": set()}
    for path in root.glob("src/*/sql/*/*/*.sql"):
        if path.parent.name != "internal":
            users["/public"].add(path.stem)
        for match in _CALL.finditer(path.read_text(encoding="utf-8")):
            if match[2] != path.stem:
                users.setdefault(match[2], set()).add(path.stem)
    return users
