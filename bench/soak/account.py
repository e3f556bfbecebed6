"""Whether each job ran once and was recorded once, by the handlers and by the database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from bench.apps.slate import Slate
from bench.internals.tables import SOAK_ENDED, SOAK_LEFT
from bench.soak.calls import Kind, TimedCall
from bench.soak.filling import HISTORY

__all__ = ["Part", "Verdict", "check", "require_same_ends"]

# A call that was cut off may have ended jobs that its worker did not note.
_TOLERANCE = 0.001


@dataclass(frozen=True, slots=True)
class Part:
    """Numbers that belong together, from the first to before the end; ``enqueued`` of them."""

    name: str
    first: int
    end: int
    enqueued: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the jobs of a part."""

    jobs: int
    # Ends that were recorded.
    ended: int
    lost: int
    repeated: int


def check(
    connection: psycopg.Connection, slate: Slate, parts: Sequence[Part]
) -> dict[str, Verdict]:
    """Judge every part; workers must have stopped. Parts are in the order of their numbers."""
    parameters = {"bounds": [part.first for part in parts], "history": HISTORY}
    # Sorted in memory: the numbers are counted after all measuring.
    connection.execute("set work_mem = '512MB'")
    ended = {row[0]: row[1:] for row in connection.execute(SOAK_ENDED, parameters).fetchall()}
    left: dict[int, int] = dict(connection.execute(SOAK_LEFT, parameters).fetchall())
    found = {}
    for number, part in enumerate(parts, 1):
        counts = bytes(slate.counts[part.first : part.end])
        started = len(counts) - counts.count(0)
        ends, distinct = ended.get(number, (0, 0))
        due = part.enqueued - left.get(number, 0)
        found[part.name] = Verdict(
            jobs=part.enqueued,
            ended=ends,
            lost=max(due - started, due - distinct, 0),
            repeated=max(started - counts.count(1), ends - distinct),
        )
    return found


def require_same_ends(noted: Iterable[TimedCall], verdicts: Mapping[str, Verdict]) -> None:
    """Throughput is what workers noted: it must be what the database has."""
    ends = sum(call.jobs for call in noted if call.kind == Kind.COMPLETE and call.jobs > 0)
    recorded = sum(verdict.ended for verdict in verdicts.values())
    if abs(ends - recorded) > _TOLERANCE * recorded:
        raise RuntimeError(f"Workers noted {ends:,} ends of jobs, the database has {recorded:,}")
