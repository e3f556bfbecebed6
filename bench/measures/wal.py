"""Bytes of write-ahead log per job from enqueue to finished, by size of payload.

The payloads are random text in JSON, which does not compress. A checkpoint and a warm-up come
first, so that images of pages touched for the first time do not count.
"""

import base64
import json
import random
from typing import Self

from bench import fill
from bench.figures import Figure
from bench.internals.tables import stored_payload
from bench.place import TASK, Place
from bench.sides import FunctionSide
from bench.sizes import Sizes

__all__ = ["PAYLOADS", "Life", "run"]

QUEUE = "wal"
# Bytes of payload, and jobs in one call of enqueue_many.
PAYLOADS = {"100": (100, 100), "8k": (8 * 1024, 100), "200k": (200 * 1024, 20)}

# A large payload is written once: its stored size, page overhead, and the job itself.
_FACTOR = 1.3
_JOB = 1536


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 1.3 times the stored size and 1.5 KB."""
    figures = []
    for (name, (size, batch)), jobs in zip(PAYLOADS.items(), sizes.wal_jobs, strict=True):
        with place.database(f"wal_{name}") as dsn, Life(dsn, size, batch) as life:
            life.warm_up(jobs)
            log, images = life.measure(jobs)
            stored = stored_payload(life.connection, QUEUE)
        figures += [
            Figure(f"wal_stored_{name}", stored, f"stored payload, {name} asked", "bytes"),
            Figure(
                f"wal_bytes_{name}",
                log,
                f"log per job, {name}",
                "bytes",
                goal=_FACTOR * stored + _JOB,
                better="at most",
            ),
            Figure(f"wal_images_{name}", images, f"page images per job, {name}"),
        ]
    return figures


class Life:
    """Enqueues, claims and completes jobs with payloads of one size."""

    def __init__(self, dsn: str, size: int, batch: int) -> None:
        self.connection = fill.connect(dsn)
        self._side = FunctionSide(dsn, "worker", QUEUE)
        self._size = size
        self._batch = batch
        self._random = random.Random(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._side.close()
        self.connection.close()

    def warm_up(self, jobs: int) -> None:
        """Touch the pages, so that their images do not count."""
        fill.checkpoint(self.connection)
        self._pass(max(self._batch, jobs // 5))

    def measure(self, jobs: int) -> tuple[float, float]:
        """Return the bytes of log and the page images per job."""
        log, images = self._log()
        done = self._pass(jobs)
        log_after, images_after = self._log()
        if done != jobs:
            raise RuntimeError(f"{done} of {jobs} jobs were completed")
        return (log_after - log) / jobs, (images_after - images) / jobs

    def _pass(self, jobs: int) -> int:
        """Enqueue the jobs, then claim and complete them; return how many were completed."""
        for at in range(0, jobs, self._batch):
            requests = [
                {"task": TASK, "queue": QUEUE, "payload": self._payload()}
                for _ in range(min(self._batch, jobs - at))
            ]
            self.connection.execute(
                "select count(*) from trunkline.enqueue_many(%s::jsonb)", (json.dumps(requests),)
            )
        done = 0
        while True:
            claimed, attempts = self._side.claim()
            if not claimed:
                return done
            done += self._side.complete(claimed, attempts)

    def _payload(self) -> dict[str, str]:
        text = base64.b64encode(self._random.randbytes(self._size)).decode()
        # The key and the quotes are the rest of the size.
        return {"data": text[: self._size - 12]}

    def _log(self) -> tuple[int, int]:
        """Return the end of the log in bytes, and how many page images it contains."""
        self.connection.execute("select pg_stat_force_next_flush()")
        row = self.connection.execute(
            "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn, wal_fpi from pg_stat_wal"
        ).fetchone()
        if row is None:
            raise RuntimeError("There are no statistics for the log")
        return int(row[0]), int(row[1])
