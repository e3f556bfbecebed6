"""Decides the outcome of one mutation."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.mutants import trial
from tools.mutants.mutation import Mutation
from tools.mutants.trial import Failure, TrialError, Trials
from tools.mutants.workspace import Workspace

__all__ = ["Verdict", "judge"]

# After this many failures that did not repeat, the other tests are skipped.
_MOST_DOUBTFUL = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: str
    test: str = ""
    reason: str = ""
    tests: int = 0
    seconds: float = 0.0


def judge(
    workspace: Workspace,
    mutation: Mutation,
    tests: Sequence[str],
    *,
    limit: float,
    is_green: Callable[[str], bool] = lambda _: True,
) -> Verdict:
    """Apply a mutation and run tests until one detects it.

    A failure counts if it repeats. ``is_green`` returns whether a test passes without the mutation.
    """
    doubtful: list[str] = []
    ran, seconds = 0, 0.0
    while True:
        with workspace.mutated(mutation):
            if obstacle := _obstacle(workspace, mutation):
                return Verdict("invalid", reason=obstacle)
            trials = _tried(workspace, tests, doubtful, limit)
            ran, seconds = ran + trials.tests, seconds + trials.seconds
            failure = _first(trials.failures)
            certain = failure is not None and _repeats(workspace, failure, limit)
        if failure is None:
            break
        if certain and is_green(failure.test):
            outcome = "timeout" if failure.timeout else "noticed"
            return Verdict(outcome, failure.test, failure.reason, ran, seconds)
        doubtful.append(failure.test)
        if len(doubtful) == _MOST_DOUBTFUL:
            break
    outcome = "chance" if doubtful else "survived"
    return Verdict(outcome, ", ".join(doubtful), "", ran, seconds)


def _tried(
    workspace: Workspace, tests: Sequence[str], deselected: Sequence[str], limit: float
) -> Trials:
    """Run the tests. If pytest cannot run at all, the first test counts as failed."""
    try:
        return trial.run(workspace, tests, deselected=deselected, limit=limit)
    except TrialError as error:
        return Trials((Failure(tests[0], "run", str(error)),), tests=0, seconds=0.0)


def _first(failures: Sequence[Failure]) -> Failure | None:
    """The failure that counts: preferably one in a test, not in a teardown."""
    return min(failures, key=lambda failure: failure.phase == "teardown", default=None)


def _repeats(workspace: Workspace, failure: Failure, limit: float) -> bool:
    """A failed teardown is not a failed test; a timeout is not repeated."""
    if failure.phase in {"teardown", "run"}:
        return failure.phase == "run"
    again = trial.run(workspace, [failure.test], limit=limit, processes=0)
    return any(other.phase != "teardown" for other in again.failures)


def _obstacle(workspace: Workspace, mutation: Mutation) -> str:
    """The reason why the mutated file cannot be installed or imported, or None."""
    if mutation.path.endswith(".py"):
        try:
            ast.parse((workspace.root / mutation.path).read_text(encoding="utf-8"))
        except SyntaxError as error:
            return str(error)
    for arguments in workspace.project.checks(mutation):
        result = workspace.run(list(arguments))
        if result.returncode != 0:
            lines = [line for line in result.stderr.splitlines() if line.strip()]
            return lines[-1] if lines else f"{arguments} ended with {result.returncode}"
    return ""
