"""The run itself: workers, a producer, and the phases. It only collects what is seen."""

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.apps.slate import Slate
from bench.internals.tables import SOAK_IS_DRAINED
from bench.rivals.product import PostgresContender
from bench.soak import calls
from bench.soak.account import Part, check, require_same_ends
from bench.soak.calls import read_calls
from bench.soak.filling import fill_in
from bench.soak.numbers import Numbers
from bench.soak.phases import Phase, plan
from bench.soak.record import Course, Stretch
from bench.soak.sampler import Sampler
from bench.soak.sizes import SoakSizes
from bench.soak.specials import Special, Specials, enqueue
from bench.worker.processes import Orders, Watched, producing, wait_for, working

__all__ = ["LOAD", "WORKERS", "run_course"]

WORKERS = 2
LOAD = 0.7

# While capacity is measured: the size of a batch, and how many jobs wait at most. No worker is
# idle, but the workers also do not just drain a backlog.
_BATCH = 500
_BACKLOG = 3_000
# As a fraction of the measured time.
_WARM_UP = 0.25
# The share of its phase for which the writing transaction is open, so that workers are still busy
# when its job is committed.
_WRITING = 60 / 62
_HEAD_START = 50_000_000
_PATIENCE = 300.0
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only the parent of our own folder
_ROOM = 2**30

_READY = "select count(*) from trunkline.workers"


def run_course(contender: PostgresContender, sizes: SoakSizes) -> Course:
    """Run all phases."""
    contender.worker = [
        "bench.soak.app:app" if part == "bench.apps.noop:app" else part for part in contender.worker
    ]
    contender.producer = [sys.executable, "-m", "bench.soak.producer"]
    with _slate_folder() as folder:
        phases = plan(sizes.minutes)
        numbers = Numbers.plan(sum(phase.seconds for phase in phases), sizes.scheduled)
        path = folder / "slate"
        slate = Slate.create(path, numbers.end)
        variables = {calls.VARIABLE: str(folder)}
        with (
            working(contender, path, processes=WORKERS, variables=variables) as worker,
            producing(contender, path) as producer,
        ):
            run = _Run(contender, worker, producer, numbers, sizes)
            capacity = run.measure_capacity()
            sampler = Sampler(contender, worker)
            with sampler.watching():
                for phase in phases:
                    if phase.key == "filled":
                        run.fill_in()
                    run.go_through(phase, LOAD * capacity)
                drained = run.drain()
        # The workers have ended, so all records are written.
        noted = sorted(read_calls(folder))
        verdicts = check(contender.connection, slate, run.parts)
        require_same_ends(noted, verdicts)
        return Course(
            capacity=capacity,
            rate=LOAD * capacity,
            stretches=run.stretches,
            calls=noted,
            specials=run.specials.done,
            samples=sampler.samples,
            slate=slate,
            verdicts=verdicts,
            drained=drained,
        )


class _Run:
    """The processes, and the next job number."""

    def __init__(
        self,
        contender: PostgresContender,
        worker: Watched,
        producer: Orders,
        numbers: Numbers,
        sizes: SoakSizes,
    ) -> None:
        self._dsn = contender.dsn
        self._connection = contender.connection
        self._worker = worker
        self._producer = producer
        self._numbers = numbers
        self._sizes = sizes
        self._first = numbers.first_arriving
        self._scheduled = 0
        self._arrived: list[Part] = []
        self.specials = Specials(contender.dsn)
        self.stretches: list[Stretch] = []

    @property
    def parts(self) -> list[Part]:
        """The enqueued parts, in the order of numbers."""
        numbers = self._numbers
        return [
            Part("special jobs", 0, numbers.specials, self.specials.used),
            Part("scheduled", numbers.specials, numbers.first_arriving, self._scheduled),
            *self._arrived,
        ]

    def measure_capacity(self) -> float:
        """Measure how many jobs a second can arrive and end at the same time."""
        wait_for(self._are_ready, self._worker, seconds=_PATIENCE, pause=0.05)
        seconds = self._sizes.capacity_seconds
        _tell(f"capacity, {seconds:.0f} s")
        end, capacity, waited = self._producer.do(
            "saturate", self._first, _BATCH, _BACKLOG, _WARM_UP * seconds, seconds
        )
        if capacity <= 0:
            raise RuntimeError("No job ended while capacity was measured")
        self._count("capacity", end)
        self.drain()
        _tell(
            f"  {capacity:,.0f} jobs/s, the producer waited for {waited:.0%} of the time; "
            f"{LOAD * capacity:,.0f} a second will arrive"
        )
        return float(capacity)

    def go_through(self, phase: Phase, rate: float) -> None:
        """Let ordinary and special jobs arrive under the conditions of the phase."""
        _tell(f"{phase.name}, {phase.seconds:.0f} s")
        with self._disturbed(phase), self.specials.arriving():
            begin = time.monotonic_ns() + _HEAD_START
            end = begin + round(phase.seconds * 1e9)
            answer = self._producer.do("stream", self._first, rate, begin, end)
            batches = [(b[0], b[1], b[2], b[3]) for b in answer]
        self._worker.check()
        self.stretches.append(Stretch(phase, begin, end, batches))
        self._count(phase.key, batches[-1][0] + batches[-1][1])

    def fill_in(self) -> None:
        """Insert a long history while no jobs arrive, because this work is not the queue's."""
        history, scheduled = self._sizes.history, self._sizes.scheduled
        _tell(f"filling in {history:,} finished and {scheduled:,} scheduled jobs")
        self.drain()
        fill_in(self._connection, history, self._numbers.specials, scheduled)
        self._scheduled = scheduled

    def drain(self) -> float:
        """Wait until all due jobs have ended; return the seconds it took."""
        begin = time.monotonic()
        wait_for(self._is_drained, self._worker, seconds=_PATIENCE, pause=0.05)
        return time.monotonic() - begin

    def _are_ready(self) -> bool:
        row = self._connection.execute(_READY).fetchone()
        return row is not None and row[0] == WORKERS

    def _is_drained(self) -> bool:
        row = self._connection.execute(SOAK_IS_DRAINED).fetchone()
        return row is not None and bool(row[0])

    def _count(self, name: str, end: int) -> None:
        self._arrived.append(Part(name, self._first, end, end - self._first))
        self._first = end

    @contextmanager
    def _disturbed(self, phase: Phase) -> Iterator[None]:
        if phase.key == "held":
            with psycopg.connect(self._dsn) as holder:
                holder.execute("set transaction isolation level repeatable read")
                holder.execute("select count(*) from trunkline.tasks")
                yield
        elif phase.key == "writing":
            with psycopg.connect(self._dsn) as writer:
                number = self.specials.number()
                # Its job has a place in the claim order, and all claims pass it meanwhile.
                enqueue(writer, number)
                committing = threading.Timer(
                    _WRITING * phase.seconds, self._commit, (writer, number)
                )
                committing.start()
                yield
                committing.join()
        else:
            yield

    def _commit(self, writer: psycopg.Connection, number: int) -> None:
        writer.commit()
        self.specials.done.append(Special("long", number, time.monotonic_ns()))


@contextmanager
def _slate_folder() -> Iterator[Path]:
    """A folder in shared memory if it has room, because records must not load the disk."""
    room = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM
    with tempfile.TemporaryDirectory(
        prefix="trunkline-bench-", dir=_SHARED_MEMORY if room else None
    ) as folder:
        yield Path(folder)


def _tell(text: str) -> None:
    print(f"  {text}", flush=True)
