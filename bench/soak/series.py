"""Computes figures from the raw data: per second for the chart, per phase for the table."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.soak.calls import Kind
from bench.soak.record import Course, Stretch

__all__ = ["PhaseFigures", "Seconds", "percentile", "phase_figures", "seconds_of"]

# Latencies sampled from each batch, evenly spread: 2,500 a second.
_LATENCIES = 50


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """One phase in numbers; times in milliseconds, processors in cores."""

    key: str
    name: str
    begin: float
    end: float
    arrived: float
    completed: float
    claims: int
    jobs_per_claim: float
    claim_p50: float
    claim_p99: float
    claim_longest: float
    look_longest: float
    latency_p50: float
    latency_p99: float
    urgent_p99: float
    late_p99: float
    dead_most: int
    worker_cores: float
    server_cores: float
    other_cores: float


@dataclass(frozen=True, slots=True)
class Seconds:
    """The run by the second; a value is NaN where there is no data."""

    arrived: list[float]
    completed: list[float]
    claim_p50: list[float]
    claim_p99: list[float]
    claim_longest: list[float]
    latency_p50: list[float]
    latency_p99: list[float]
    urgent: list[float]
    late: list[float]


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile; with few values, the highest."""
    if not values:
        return math.nan
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def phase_figures(course: Course, stretch: Stretch) -> PhaseFigures:
    """Summarise a phase."""
    begin, end = stretch.begin, stretch.end
    zero, seconds = course.stretches[0].begin, (stretch.end - stretch.begin) / 1e9
    inside = [call for call in course.calls if begin <= call.ended < end]
    claims = [call for call in inside if call.kind == Kind.CLAIM]
    latencies = [taken for _, taken in _latencies(course, [stretch])]
    samples = [sample for sample in course.samples if begin <= sample.at < end]
    first, last = samples[0], samples[-1]
    sampled = max(last.at - first.at, 1) / 1e9
    times = [call.taken / 1e6 for call in claims]
    return PhaseFigures(
        key=stretch.phase.key,
        name=stretch.phase.name,
        begin=(begin - zero) / 1e9,
        end=(end - zero) / 1e9,
        arrived=sum(batch[1] for batch in stretch.batches) / seconds,
        completed=sum(c.jobs for c in inside if c.kind == Kind.COMPLETE and c.jobs > 0) / seconds,
        claims=len(claims),
        jobs_per_claim=sum(max(call.jobs, 0) for call in claims) / max(len(claims), 1),
        claim_p50=percentile(times, 50),
        claim_p99=percentile(times, 99),
        claim_longest=percentile(times, 100),
        look_longest=max((c.taken / 1e6 for c in inside if c.kind == Kind.LOOK), default=math.nan),
        latency_p50=percentile(latencies, 50),
        latency_p99=percentile(latencies, 99),
        urgent_p99=percentile([t for _, t in _specials(course, "urgent", begin, end)], 99),
        late_p99=percentile([t for _, t in _specials(course, "late", begin, end)], 99),
        dead_most=max(sum(sample.dead.values()) for sample in samples),
        worker_cores=(last.worker_cpu - first.worker_cpu) / sampled,
        server_cores=(last.server_cpu - first.server_cpu) / sampled,
        other_cores=(last.other_cpu - first.other_cpu) / sampled,
    )


def seconds_of(course: Course) -> Seconds:
    """Group everything by second; incomplete seconds are left out."""
    zero = course.stretches[0].begin
    length = int((course.stretches[-1].end - zero) / 1e9)
    claims = _grouped(
        ((c.ended, c.taken / 1e6) for c in course.calls if c.kind == Kind.CLAIM), zero, length
    )
    ends = _grouped(
        ((c.ended, c.jobs) for c in course.calls if c.kind == Kind.COMPLETE), zero, length
    )
    batches = ((b[3], b[1]) for stretch in course.stretches for b in stretch.batches)
    latencies = _grouped(_latencies(course, course.stretches), zero, length)
    every = (zero, course.stretches[-1].end)
    urgent, late = (
        _grouped(_specials(course, kind, *every), zero, length) for kind in ("urgent", "late")
    )
    return Seconds(
        arrived=[sum(values) for values in _grouped(batches, zero, length)],
        completed=[sum(values) for values in ends],
        claim_p50=[percentile(values, 50) for values in claims],
        claim_p99=[percentile(values, 99) for values in claims],
        claim_longest=[percentile(values, 100) for values in claims],
        latency_p50=[percentile(values, 50) for values in latencies],
        latency_p99=[percentile(values, 99) for values in latencies],
        urgent=[percentile(values, 100) for values in urgent],
        late=[percentile(values, 100) for values in late],
    )


def _latencies(course: Course, stretches: Iterable[Stretch]) -> Iterator[tuple[int, float]]:
    """For a sample of jobs: when a job committed, and milliseconds until its handler started."""
    starts = course.slate.starts
    for stretch in stretches:
        for first, jobs, _, committed in stretch.batches:
            for number in range(first, first + jobs, max(jobs // _LATENCIES, 1)):
                # A job that never started is reported as lost.
                if starts[number]:
                    yield committed, (starts[number] - committed) / 1e6


def _specials(course: Course, kind: str, begin: int, end: int) -> Iterator[tuple[int, float]]:
    for special in course.specials:
        start = course.slate.starts[special.number]
        if special.kind == kind and begin <= special.committed < end and start:
            yield special.committed, (start - special.committed) / 1e6


def _grouped(events: Iterable[tuple[int, float]], zero: int, length: int) -> list[list[float]]:
    groups: defaultdict[int, list[float]] = defaultdict(list)
    for at, value in events:
        groups[(at - zero) // 1_000_000_000].append(value)
    return [groups.get(second, []) for second in range(length)]
