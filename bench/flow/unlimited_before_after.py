"""Tasks without limits, over the engine of the last commit before there were any.

That engine is installed from its own sources into a database of its own; both claim and complete
through their functions, in turns, and then enqueue batches. Its sources come out of the history of
this repository, or from the checkout that TRUNKLINE_BENCH_BEFORE names; with neither, there is
nothing to measure.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from uuid import UUID

from bench import fill
from bench.figures import Figure
from bench.flow.limited import QUEUE
from bench.flow.limits_claim import open_sides
from bench.place import TASK, Place
from bench.rivals.product import ROOT
from bench.sides import BATCH, Side
from bench.sizes import Sizes
from bench.turns import Rounds, play

__all__ = ["run"]

VARIABLE = "TRUNKLINE_BENCH_BEFORE"
# The parent of the commit that brought migration 0013.
BEFORE = "233c40567d29"
PROCESSES = 2
# The goal is close to one, so it takes more turns than the others to tell.
_MORE_ROUNDS = 3

# Where what is enqueued waits, so that nobody claims it.
_STORE = "store"

_INSTALL = "import os; from trunkline import schema; schema.install(os.environ['TRUNKLINE_DSN'])"


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 0.97."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        sources = _sources(folder)
        if sources is None:
            print(f"\n  left out: no commit {BEFORE} here, and no {VARIABLE}")
            return []
        before = stack.enter_context(place.empty_database("before"))
        _install(sources, before)
        dsns = [before, stack.enter_context(place.database("after"))]
        for dsn in dsns:
            with fill.connect(dsn) as connection:
                backlog = sizes.flow.backlog * (_MORE_ROUNDS if sizes.flow.rounds > 2 else 1)
                fill.ready(connection, backlog, queue=QUEUE)
                fill.analyze(connection)
                fill.checkpoint(connection)
        found = play(
            PROCESSES,
            partial(open_sides, dsns),
            rounds=sizes.flow.rounds * _MORE_ROUNDS,
            seconds=sizes.flow.turn_seconds,
        )
        stored = play(
            PROCESSES,
            partial(_open_producers, dsns),
            rounds=sizes.flow.rounds * _MORE_ROUNDS,
            seconds=sizes.flow.turn_seconds,
        )
    return [
        *_tell("unlimited", "claim + complete", found),
        *_tell("unlimited_enqueue", "enqueue", stored),
    ]


def _tell(key: str, what: str, found: Rounds) -> list[Figure]:
    figures = [
        Figure(f"{key}_before", found.rate(0), f"{what}, before there were limits", "jobs/s"),
        Figure(f"{key}_after", found.rate(1), f"{what}, now, without limits", "jobs/s"),
        Figure(f"{key}_vs_before", found.ratio(1), "  over before", goal=0.97),
    ]
    if found.has_cpu:
        ratio = found.cpu(0) / found.cpu(1)
        figures.append(Figure(f"{key}_cpu_vs_before", ratio, "  the same by processor time"))
    return figures


class _Producer:
    """Takes turns as workers do: what it claims is made up, to complete it is to enqueue it."""

    def __init__(self, dsn: str) -> None:
        self.connection = fill.connect(dsn)
        asked = [
            {"task": TASK, "queue": _STORE, "payload": {"number": number, "text": "twenty bytes"}}
            for number in range(BATCH)
        ]
        self._asked = json.dumps(asked)

    def claim(self) -> tuple[list[UUID], list[int]]:
        return [UUID(int=number) for number in range(BATCH)], [1] * BATCH

    def complete(self, jobs: Sequence[UUID], attempts: Sequence[int]) -> int:  # noqa: ARG002
        row = self.connection.execute(
            "select count(*) from trunkline.enqueue_many(%s::jsonb)", (self._asked,)
        ).fetchone()
        return int(row[0]) if row is not None else 0

    def close(self) -> None:
        self.connection.close()


def _open_producers(dsns: list[str], number: int) -> list[Side]:  # noqa: ARG001
    return [_Producer(dsn) for dsn in dsns]


def _sources(folder: Path) -> Path | None:
    """Find the folder that has the package of before; nothing if it cannot be had."""
    if given := os.environ.get(VARIABLE):
        return Path(given) / "src"
    git = shutil.which("git")
    if git is None:
        return None
    archive = subprocess.run(
        [git, "archive", BEFORE, "src/trunkline"], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        return None
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def _install(sources: Path, dsn: str) -> None:
    """Install the schema of those sources, by their own code."""
    subprocess.run(
        [sys.executable, "-c", _INSTALL],
        env={**os.environ, "PYTHONPATH": str(sources), "TRUNKLINE_DSN": dsn},
        check=True,
    )
    with fill.connect(dsn) as connection:
        connection.execute("select trunkline.register_task(p_task => %s)", (TASK,))
        connection.execute("select trunkline.maintain_partitions()")
