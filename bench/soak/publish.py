"""The record of a soak, and its chart."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from bench.charts.lines import Line, Phase, Plot, lines
from bench.figures import Figure
from bench.soak.course import LOAD, WORKERS
from bench.soak.record import Course
from bench.soak.sampler import TABLES
from bench.soak.series import PhaseFigures, Seconds, seconds_of
from bench.soak.sizes import SoakSizes

__all__ = ["publish"]

_MILLION = 1e6


def publish(
    sizes: SoakSizes,
    facts: Mapping[str, str | int],
    course: Course,
    phases: Sequence[PhaseFigures],
    figures: Sequence[Figure],
) -> None:
    """Write both files."""
    command = f"python -m bench soak --minutes {sizes.minutes:g}"
    date = datetime.now(UTC).date().isoformat()
    seconds = seconds_of(course)
    samples = _samples(course)
    record = {
        "date": date,
        "command": command,
        "machine": dict(facts),
        "versions": {name: version(name) for name in ("trunkline", "psycopg", "uvloop")},
        "workers": WORKERS,
        "capacity": round(course.capacity),
        "rate": round(course.rate),
        "history": sizes.history,
        "scheduled": sizes.scheduled,
        "phases": [_rounded(asdict(phase)) for phase in phases],
        "books": {name: asdict(verdict) for name, verdict in course.verdicts.items()},
        "goals": [_goal(figure) for figure in figures if figure.goal is not None],
        "figures": _rounded({figure.key: figure.value for figure in figures}),
        "seconds": _rounded(asdict(seconds)),
        "samples": _rounded(samples),
    }
    sizes.results.mkdir(parents=True, exist_ok=True)
    parts = [f"{json.dumps(key)}: {_listed(value)}" for key, value in record.items()]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    (sizes.results / "soak.json").write_text(text, encoding="utf-8")
    note = (
        f"{date}, {facts['cores']} cores, PostgreSQL {facts['server_version']}, fsync "
        f"{facts['fsync']}; {WORKERS} worker processes, a producer and the server on one machine; "
        f"{course.rate:,.0f} jobs/s arrive\n{command}"
    )
    (sizes.results / "soak.svg").write_text(
        _chart(phases, seconds, samples, note), encoding="utf-8"
    )


def _samples(course: Course) -> dict[str, list[float]]:
    """The samples by name; the first is the time, in seconds from the start."""
    zero = course.stretches[0].begin
    samples = [sample for sample in course.samples if sample.at >= zero]
    series: dict[str, list[float]] = {"at": [(sample.at - zero) / 1e9 for sample in samples]}
    for table in TABLES:
        series[f"dead_{table}"] = [sample.dead[table] for sample in samples]
        series[f"table_{table}"] = [sample.table_bytes[table] for sample in samples]
        series[f"index_{table}"] = [sample.index_bytes[table] for sample in samples]
    series["vacuums"] = [sample.vacuums for sample in samples]
    for who in ("worker", "server", "other"):
        used = [getattr(sample, f"{who}_cpu") for sample in samples]
        # The first has no predecessor.
        series[f"{who}_cores"] = [math.nan] + [
            (after - before) / max(to - since, 0.1)
            for before, after, since, to in zip(
                used, used[1:], series["at"], series["at"][1:], strict=False
            )
        ]
    return series


def _chart(
    phases: Sequence[PhaseFigures],
    seconds: Seconds,
    samples: Mapping[str, Sequence[float]],
    note: str,
) -> str:
    def each_second(name: str, values: Sequence[float]) -> Line:
        return Line(name, [(at + 0.5, value) for at, value in enumerate(values)])

    def sampled(name: str, key: str, unit: float = 1.0) -> Line:
        return Line(name, [(a, v / unit) for a, v in zip(samples["at"], samples[key], strict=True)])

    def sizes_of(table: str) -> list[Line]:
        return [
            sampled(table, f"table_{table}", _MILLION),
            sampled(f"{table}, indexes", f"index_{table}", _MILLION),
        ]

    plots = [
        Plot(
            "Jobs",
            "per second",
            [
                each_second("arrived", seconds.arrived),
                each_second("completed", seconds.completed),
            ],
        ),
        Plot(
            "Claim",
            "ms, in the worker",
            [
                each_second("p50", seconds.claim_p50),
                each_second("p99", seconds.claim_p99),
                each_second("longest", seconds.claim_longest),
            ],
            log=True,
        ),
        Plot(
            "Latency",
            "ms from commit to handler",
            [each_second("p50", seconds.latency_p50), each_second("p99", seconds.latency_p99)],
            log=True,
        ),
        Plot(
            "Special jobs",
            "ms from commit to handler",
            [
                each_second("urgent", seconds.urgent),
                each_second("committed 300 ms after insert", seconds.late),
            ],
            log=True,
            goal=50,
        ),
        Plot(
            "Dead rows",
            "millions",
            [sampled(table, f"dead_{table}", _MILLION) for table in ("waiting", "running")],
        ),
        Plot("Size of live tables", "MB", [*sizes_of("waiting"), *sizes_of("running")]),
        Plot("Size of the history", "MB", sizes_of("finished")),
        Plot(
            "Processor",
            "cores",
            [
                sampled("server", "server_cores"),
                sampled("workers", "worker_cores"),
                sampled("other processes", "other_cores"),
            ],
        ),
    ]
    minutes = sum(phase.end - phase.begin for phase in phases) / 60
    return lines(
        f"{minutes:.2g} minutes at {LOAD:.0%} of capacity",
        plots,
        _drawn(phases),
        note=note,
    )


def _drawn(phases: Sequence[PhaseFigures]) -> list[Phase]:
    """The phases, and the time without arrivals."""
    spans: list[Phase] = []
    for phase in phases:
        if phase.key == "filled":
            spans.append(Phase("filling in", spans[-1].end, phase.begin))
        spans.append(Phase(phase.name, phase.begin, phase.end))
    return spans


def _goal(figure: Figure) -> dict[str, Any]:
    return {
        "key": figure.key,
        "value": _rounded(figure.value),
        "better": figure.better,
        "goal": figure.goal,
        "verdict": figure.verdict,
    }


def _rounded(value: Any) -> Any:
    """Round to four digits or to an integer; NaN becomes None, because JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")


def _listed(value: Any) -> str:
    """Format one object or series per line, so that two runs can be compared."""
    if isinstance(value, dict) and len(value) > 1:
        inside = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
        return "{\n" + inside + "\n}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"  {json.dumps(each)}" for each in value) + "\n]"
    return json.dumps(value)
