"""The raw data of a soak becomes figures, verdicts and a record."""

import json
import math
import time
from pathlib import Path

import pytest

from bench.apps.slate import Slate
from bench.soak import sizes
from bench.soak.account import Verdict
from bench.soak.calls import Kind, TimedCall
from bench.soak.phases import Phase
from bench.soak.publish import publish
from bench.soak.record import Batch, Course, Stretch
from bench.soak.sampler import TABLES, Sample
from bench.soak.series import percentile, phase_figures, seconds_of
from bench.soak.soak import judge
from bench.soak.specials import Special

SECOND = 1_000_000_000
KEYS = ["clean", "held", "writing", "filled", "after"]


def test_a_percentile_of_few_values_is_the_highest() -> None:
    assert percentile([3, 1, 2], 99) == 3
    assert percentile(range(1, 201), 99) == 198
    assert percentile(range(1, 201), 50) == 100
    assert math.isnan(percentile([], 99))


def course(tmp_path: Path, *, held_jobs: int = 100, held_claim: int = 2) -> Course:
    """Two seconds a phase; 100 jobs in each, which start 5 ms after their commit."""
    slate = Slate.create(tmp_path / "slate", 1_000)
    zero = time.monotonic_ns()
    stretches, calls, specials, samples = [], [], [], []
    for at, key in enumerate(KEYS):
        begin = zero + 2 * at * SECOND
        committed = begin + SECOND // 2
        batch: Batch = (100 * (at + 1), 100, committed - 1_000_000, committed)
        for number in range(batch[0], batch[0] + 100):
            slate.starts[number] = committed + 5_000_000
        stretches.append(Stretch(Phase(key, key, 2.0), begin, begin + 2 * SECOND, [batch]))
        claim, jobs = (held_claim, held_jobs) if key == "held" else (2, 100)
        calls += [
            TimedCall(committed + 4_000_000, claim * 1_000_000, Kind.CLAIM, jobs),
            TimedCall(committed + 5_000_000, 900_000_000, Kind.LOOK, 0),
            TimedCall(committed + 6_000_000, 1_000_000, Kind.COMPLETE, jobs),
        ]
        for offset, kind in enumerate(("urgent", "late", "long")):
            number = 10 * at + offset
            slate.starts[number] = committed + 7_000_000
            specials.append(Special(kind, number, committed))
        dead = dict.fromkeys(TABLES, 1_000 * at)
        samples += [
            Sample(begin + t * SECOND, dead, dead, dead, 0, 2.0 * at + t, at + t / 2, 0.0)
            for t in (0, 1)
        ]
    return Course(
        capacity=150.0,
        rate=100.0,
        stretches=stretches,
        calls=calls,
        specials=specials,
        samples=samples,
        slate=slate,
        verdicts={key: Verdict(100, 100, 0, 0) for key in KEYS},
        drained=0.1,
    )


def test_a_phase_is_summed_up(tmp_path: Path) -> None:
    seen = course(tmp_path)
    held = phase_figures(seen, seen.stretches[1])
    assert (held.begin, held.end) == (2.0, 4.0)
    assert (held.arrived, held.completed) == (50.0, 50.0)
    # The full scan does not count as a claim.
    assert (held.claims, held.claim_p99, held.claim_longest) == (1, 2.0, 2.0)
    assert held.look_longest == 900.0
    assert (held.latency_p50, held.latency_p99) == (5.0, 5.0)
    assert (held.urgent_p99, held.late_p99) == (7.0, 7.0)
    assert (held.dead_most, held.worker_cores, held.server_cores) == (3_000, 1.0, 0.5)


def test_events_fall_into_their_seconds(tmp_path: Path) -> None:
    seconds = seconds_of(course(tmp_path))
    assert seconds.arrived == [100, 0] * 5
    assert seconds.completed == [100, 0] * 5
    assert seconds.claim_p99[0] == 2.0
    assert math.isnan(seconds.claim_p99[1])
    assert seconds.late[4] == 7.0


@pytest.mark.parametrize(
    ("jobs", "claim", "missed"),
    [
        (100, 4, set()),
        (89, 4, {"soak_held_throughput_ratio"}),
        (100, 5, {"soak_held_claim_p99_ratio"}),
    ],
)
def test_goals_can_be_missed(tmp_path: Path, jobs: int, claim: int, missed: set[str]) -> None:
    seen = course(tmp_path, held_jobs=jobs, held_claim=claim)
    figures = judge(seen, [phase_figures(seen, stretch) for stretch in seen.stretches])
    assert {figure.key for figure in figures if figure.verdict == "MISSED"} == missed
    assert sum(figure.goal is not None for figure in figures) == 7


def test_lost_work_misses_its_goal(tmp_path: Path) -> None:
    seen = course(tmp_path)
    seen.verdicts["after"] = Verdict(100, 100, lost=1, repeated=2)
    # A special job that never started has no latency and is reported as lost.
    seen.slate.starts[22] = 0
    figures = {
        figure.key: figure
        for figure in judge(seen, [phase_figures(seen, stretch) for stretch in seen.stretches])
    }
    assert figures["soak_lost"].verdict == figures["soak_repeated"].verdict == "MISSED"


def test_the_record_is_written(tmp_path: Path) -> None:
    seen = course(tmp_path)
    phases = [phase_figures(seen, stretch) for stretch in seen.stretches]
    wanted = sizes.SoakSizes(10, 20, 5_000_000, 1_000_000, tmp_path / "results")
    facts: dict[str, str | int] = {"cores": 2, "server_version": "18.1", "fsync": "on"}
    publish(wanted, facts, seen, phases, judge(seen, phases))
    text = (tmp_path / "results" / "soak.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    record = json.loads(text)
    assert record["command"] == "python -m bench soak --minutes 10"
    assert record["seconds"]["claim_p99"][:2] == [2.0, None]
    assert {goal["verdict"] for goal in record["goals"]} == {"met"}
