"""Checks that the tests pass without a mutation, and remembers the files that do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.mutants import trial
from tools.mutants.project import Project
from tools.mutants.state import State
from tools.mutants.workspace import Workspace, digest, listed

__all__ = ["Baseline", "BaselineFailed"]

# Files in one run of pytest; an interrupted baseline continues after the last complete one.
_BATCH = 40


class BaselineFailed(Exception):
    """Tests fail without any mutation; the message lists them."""


class Baseline:
    """Remembers files by content: a changed file is tried again; changed sources mean all."""

    def __init__(self, project: Project, state: State) -> None:
        root = self._root = project.root
        self._state = state
        helpers = [name for name in listed(root) if not _is_test(name)]
        shared = hashlib.sha256()
        for name in helpers:
            if name.startswith(tuple(f"{folder}/" for folder in project.test_folders)):
                shared.update(name.encode() + (root / name).read_bytes())
        self._tree = f"{digest(root, *project.source_folders)}-{shared.hexdigest()[:16]}"
        self._green = state.green(self._tree)
        self._red: set[str] = set()

    def require(self, workspace: Workspace, tests: Iterable[str], limit: float) -> None:
        """Run the files that are not known to pass; only a repeated failure counts."""
        missing = [test for test in dict.fromkeys(tests) if self._named(test) not in self._green]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            trials = trial.run(workspace, batch, limit=limit, stop_at_first=False)
            failed = {failure.test: failure for failure in trials.failures}
            broken = [test for test in failed if not self._passes(workspace, test, limit)]
            if broken:
                shown = "\n".join(f"  {test}: {failed[test].reason}" for test in broken)
                raise BaselineFailed(f"Tests fail without a mutation:\n{shown}")
            print(f"baseline: {trials.tests} tests of {len(batch)} files pass", flush=True)
            self._remember(batch)

    def is_green(self, workspace: Workspace, test: str, limit: float) -> bool:
        """Whether a single test, or its whole file, passes without a mutation."""
        if not test or {self._named(test), self._named(_file(test))} & self._green:
            return True
        if test not in self._red:
            if self._passes(workspace, test, limit):
                self._remember([test])
                return True
            self._red.add(test)
        return False

    def _passes(self, workspace: Workspace, test: str, limit: float) -> bool:
        if not test:
            return False
        return not trial.run(workspace, [test], limit=limit, processes=0).failures

    def _remember(self, tests: Sequence[str]) -> None:
        names = [self._named(test) for test in tests]
        self._green |= set(names)
        self._state.add_green(self._tree, names)

    def _named(self, test: str) -> str:
        content = (self._root / _file(test)).read_bytes()
        return f"{test}#{hashlib.sha256(content).hexdigest()[:8]}"


def _file(test: str) -> str:
    return test.partition("::")[0]


def _is_test(name: str) -> bool:
    path = Path(name)
    return path.name.startswith("test_") or (path.suffix == ".sql" and "helpers" not in path.parts)
