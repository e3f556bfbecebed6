"""Mutations without a visible effect, each with the reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.mutation import Mutation
from tools.mutants.project import Project

__all__ = ["Equivalents", "load"]

# Entries identify the change by its text, because line numbers change.
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Equivalents:
    reasons: dict[_Key, str]

    def reason(self, mutation: Mutation) -> str | None:
        """The reason why a mutation has no effect, if it is listed."""
        return self.reasons.get((mutation.path, mutation.scope, mutation.before, mutation.after))

    def stale(self, project: Project) -> list[str]:
        """Entries that match no mutation any more: the code changed and the reason may be wrong."""
        present: set[_Key] = set()
        for name in {key[0] for key in self.reasons}:
            path = project.root / name
            if path.is_file():
                present |= {(m.path, m.scope, m.before, m.after) for m in project.sites(path)}
        missing = sorted(set(self.reasons) - present)
        return [f"{path} {scope}: {after or 'dropped'}" for path, scope, _, after in missing]


def load(file: Path | None) -> Equivalents:
    """Read the list; every entry needs all its fields and a reason."""
    if file is None or not file.exists():
        return Equivalents({})
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("equivalent", [])
    reasons: dict[_Key, str] = {}
    for entry in entries:
        fields = ("path", "scope", "before", "after")
        path, scope, before, after = (str(entry[field]) for field in fields)
        if not str(entry["reason"]).strip():
            raise ValueError(f"{file.name}: {path} {scope} has no reason")
        reasons[path, scope, before, after] = str(entry["reason"])
    return Equivalents(reasons)
