"""Checks that each job ran once and was recorded once, in the slate and in the database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from bench.apps.slate import Slate
from bench.internals.tables import SOAK_ENDED, SOAK_LEFT
from bench.soak.calls import Kind, TimedCall
from bench.soak.filling import HISTORY

__all__ = ["Part", "Verdict", "check", "require_same_ends"]

# A call that was cut off may have ended jobs that its worker did not record.
_TOLERANCE = 0.001


@dataclass(frozen=True, slots=True)
class Part:
    """Numbers from the first to before the end, ``enqueued`` of which were used."""

    name: str
    first: int
    end: int
    enqueued: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of the jobs of a part."""

    jobs: int
    # Recorded ends.
    ended: int
    lost: int
    repeated: int


def check(
    connection: psycopg.Connection, slate: Slate, parts: Sequence[Part]
) -> dict[str, Verdict]:
    """Return the outcome of every part, in order of numbers; workers must have stopped."""
    parameters = {"bounds": [part.first for part in parts], "history": HISTORY}
    # The sort fits in memory; all measuring is over.
    connection.execute("set work_mem = '512MB'")
    ended = {row[0]: row[1:] for row in connection.execute(SOAK_ENDED, parameters).fetchall()}
    left: dict[int, int] = dict(connection.execute(SOAK_LEFT, parameters).fetchall())
    verdicts = {}
    for number, part in enumerate(parts, 1):
        counts = bytes(slate.counts[part.first : part.end])
        started = len(counts) - counts.count(0)
        ends, distinct = ended.get(number, (0, 0))
        due = part.enqueued - left.get(number, 0)
        verdicts[part.name] = Verdict(
            jobs=part.enqueued,
            ended=ends,
            lost=max(due - started, due - distinct, 0),
            repeated=max(started - counts.count(1), ends - distinct),
        )
    return verdicts


def require_same_ends(noted: Iterable[TimedCall], verdicts: Mapping[str, Verdict]) -> None:
    """Check that the ends that workers recorded, which give the throughput, match the database."""
    ends = sum(call.jobs for call in noted if call.kind == Kind.COMPLETE and call.jobs > 0)
    recorded = sum(verdict.ended for verdict in verdicts.values())
    if abs(ends - recorded) > _TOLERANCE * recorded:
        raise RuntimeError(f"Workers recorded {ends:,} ended jobs, the database has {recorded:,}")
