"""A complete run: sample, baseline, one mutation after the other, results as they arrive."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from tools.mutants import choice, equivalents, sample
from tools.mutants.baseline import Baseline
from tools.mutants.judge import Verdict, judge
from tools.mutants.mutation import Mutation
from tools.mutants.project import Project
from tools.mutants.state import Result, State
from tools.mutants.trial import Stopped
from tools.mutants.workspace import Workspace, digest

__all__ = ["Options", "Run"]


@dataclass(frozen=True, slots=True)
class Options:
    seed: int = 1
    count: int = 20
    domains: Sequence[str] = ()
    # Minutes after which no further mutation is started.
    budget: float | None = None
    # Minutes for the tests of one mutation.
    timeout: float = 30
    jobs: int = 1
    # First try all chosen tests without a mutation, not only those that fail with one.
    full_baseline: bool = True
    # Only these mutations of the sample, by key.
    only: Sequence[str] = ()


class Run:
    """Draws the sample and tries the mutations that have no result yet."""

    def __init__(self, project: Project, options: Options, folder: Path) -> None:
        self._project = project
        self._options = options
        name = "-".join([f"seed-{options.seed}", *sorted(options.domains)])
        self.report = folder / f"{name}.json"
        self._state = State(folder / f"{name}.jsonl")
        self._baseline = Baseline(project, State(folder / "baseline.jsonl"))
        self._equivalents = equivalents.load(project.equivalents)
        self._sources = digest(project.root, *project.source_folders)
        self._suite = digest(project.root, *project.test_folders)
        self._stopped = threading.Event()
        self._deadline: float | None = None
        drawn = sample.draw(project, options.seed, options.count, options.domains)
        self.mutations = [m for m in drawn if not options.only or m.key in options.only]
        self._results = self._known()

    @property
    def results(self) -> list[Result]:
        """In the order of the sample."""
        return [self._results[m.key] for m in self.mutations if m.key in self._results]

    @property
    def groups(self) -> dict[str, str]:
        """The domain of each mutation."""
        return {m.key: self._project.domain_of(m.path) for m in self.mutations}

    @property
    def stale(self) -> list[str]:
        """Entries of the list of equivalents that match nothing."""
        return self._equivalents.stale(self._project)

    def go(self, tell: Callable[[Result], None] = lambda _: None) -> None:
        """Try the rest of the sample until the sample or the budget is used up."""
        rest = [m for m in self.mutations if m.key not in self._results]
        if not rest:
            return
        if self._options.budget is not None:
            self._deadline = time.monotonic() + self._options.budget * 60
        waiting: SimpleQueue[Mutation] = SimpleQueue()
        for mutation in rest:
            waiting.put(mutation)
        with self._interruptible():
            if self._options.full_baseline:
                self._try_unmutated(rest)
            with ThreadPoolExecutor(self._options.jobs) as pool:
                jobs = [pool.submit(self._work, waiting, tell) for _ in range(self._options.jobs)]
            for job in jobs:
                job.result()

    def _work(self, waiting: SimpleQueue[Mutation], tell: Callable[[Result], None]) -> None:
        try:
            with Workspace(self._project, self._stopped) as workspace:
                while not self._is_over():
                    mutation = waiting.get_nowait()
                    result = self._result(mutation, self._judge(workspace, mutation))
                    self._results[mutation.key] = result
                    self._state.add(result)
                    tell(result)
        except (Empty, Stopped):
            return
        except BaseException:
            # The other jobs stop too.
            self._stopped.set()
            raise

    def _judge(self, workspace: Workspace, mutation: Mutation) -> Verdict:
        tests = choice.test_files(self._project, mutation)
        limit = self._options.timeout * 60
        return judge(
            workspace,
            mutation,
            tests,
            limit=limit,
            is_green=lambda test: self._baseline.is_green(workspace, test, limit),
        )

    def _try_unmutated(self, mutations: Sequence[Mutation]) -> None:
        tests = [test for m in mutations for test in choice.test_files(self._project, m)]
        try:
            with Workspace(self._project, self._stopped) as workspace:
                self._baseline.require(workspace, tests, self._options.timeout * 60)
        except Stopped:
            return

    def _is_over(self) -> bool:
        late = self._deadline is not None and time.monotonic() > self._deadline
        return late or self._stopped.is_set()

    def _known(self) -> dict[str, Result]:
        known = self._state.results(self._sources, self._suite)
        for mutation in self.mutations:
            if reason := self._equivalents.reason(mutation):
                verdict = Verdict("equivalent", reason=reason)
                known[mutation.key] = self._result(mutation, verdict)
            elif mutation.key in known and known[mutation.key].outcome == "equivalent":
                del known[mutation.key]
        return known

    def _result(self, mutation: Mutation, verdict: Verdict) -> Result:
        return Result(
            key=mutation.key,
            outcome=verdict.outcome,
            path=mutation.path,
            line=mutation.line,
            kind=mutation.kind,
            scope=mutation.scope,
            before=mutation.before,
            after=mutation.after,
            test=verdict.test,
            reason=verdict.reason,
            tests=verdict.tests,
            seconds=round(verdict.seconds, 1),
            sources=self._sources,
            suite=self._suite,
        )

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Signals end the tests in progress and keep the results so far."""
        handled = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(one, lambda *_: self._stopped.set()) for one in handled]
        try:
            yield
        finally:
            for one, handler in zip(handled, before, strict=True):
                signal.signal(one, handler)
