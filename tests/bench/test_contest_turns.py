"""A contest goes on whatever a product does, and says what it did."""

import dataclasses
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.contest import bulk, drain, drain_1ms, enqueue, field, latency
from bench.contest.limits import TookTooLong, within
from bench.contest.scene import Scene
from bench.contest.sizes import QUICK, ContestSizes
from tests.bench.toys import NOWHERE, toy

SIZES = dataclasses.replace(
    QUICK, drain_jobs=20, pickups=5, stalled_seconds=10.0, turn_seconds=200.0, slices=2
)


@contextmanager
def contest(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    ways: Sequence[str],
    sizes: ContestSizes = SIZES,
    seconds: float = 600,
) -> Iterator[tuple[Scene, field.Field]]:
    for how in ways:
        (folder / how).mkdir()
    monkeypatch.setattr(field, "find", lambda key: toy(key, folder / key))
    entered = field.Field()
    entered.prepare(ways)
    with entered.open(NOWHERE, sizes, time.monotonic() + seconds) as scene:
        yield scene, entered


def test_every_measure_gives_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contest(tmp_path, monkeypatch, ["good"]) as (scene, _):
        for _ in range(2):
            for measure in (enqueue, bulk, drain, drain_1ms, latency):
                measure.run(scene)
    assert scene.errors == {}
    found = {result.measure: result for result in scene.board.results}
    assert {name: len(result.values) for name, result in found.items()} == {
        **dict.fromkeys(("enqueue_1", "enqueue_10", "bulk"), 2),
        **dict.fromkeys(("drain_1", "drain_2", "drain_1ms"), 2),
        **dict.fromkeys(("drain_1_from_start", "drain_2_from_start"), 2),
        "drain_1ms_from_start": 2,
        # Of three drains each.
        **dict.fromkeys(("lost", "repeated"), 6),
        "cpu_client": 2,
        **{f"latency_p{percent}": 2 for percent in (50, 95, 99)},
        **{f"latency_call_p{percent}": 2 for percent in (50, 95, 99)},
    }
    assert all(result.median >= 0 for name, result in found.items() if name != "latency_p50")
    assert found["drain_1"].jobs == 20
    assert found["drain_1ms"].jobs == 10
    assert found["drain_1"].median > found["drain_1_from_start"].median > 0
    # Each job of the one takes a millisecond longer than of the other.
    assert found["drain_1ms"].median < 1000
    # Percentiles are those of the samples of both repetitions.
    assert found["latency_p99"].jobs == 10
    assert found["latency_p99"].of_all is not None
    assert found["latency_call_p50"].median > found["latency_p50"].median


@pytest.mark.parametrize(
    ("how", "reason", "account"),
    [
        ("loses", "1 of 20 jobs lost: its backlog is empty", (1, 0)),
        ("repeats", "of 20 jobs 0 lost, 1 ran more than once", (0, 1)),
        ("writes_twice", "of 20 jobs 0 lost, 1 ran more than once", (0, 1)),
        ("writes_none", "of 20 jobs 1 lost, 0 ran more than once", (1, 0)),
        ("hangs", "stands still with 15 of 20 jobs not started", None),
        ("dies", "worker ended too early: my queue is gone", None),
    ],
)
def test_a_product_that_fails_is_told_and_the_others_go_on(
    how: str,
    reason: str,
    account: tuple[int, int] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with contest(tmp_path, monkeypatch, [how, "good"]) as (scene, _):
        for _ in range(2):
            drain.measure_drain(scene, "drain_1")
    assert list(scene.errors) == [how]
    # Once: it does not get a second chance to take everybody's time.
    (text,) = scene.errors[how]
    assert text.startswith("drain_1: ")
    assert reason in text
    assert scene.board.get(how, "drain_1") is None
    good = scene.board.get("good", "drain_1")
    assert good is not None
    assert len(good.values) == 2
    found = [scene.board.get(how, measure) for measure in ("lost", "repeated")]
    values = tuple(result.values for result in found if result is not None)
    assert values == (((account[0],), (account[1],)) if account is not None else ())


def test_a_product_that_never_answers_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = dataclasses.replace(SIZES, turn_seconds=10.0)
    with contest(tmp_path, monkeypatch, ["mute", "good"], sizes) as (scene, _):
        bulk.run(scene)
    assert scene.errors == {"mute": ["bulk: bulk took more than 10 s and was stopped"]}
    assert scene.board.get("mute", "bulk") is None
    assert scene.board.get("good", "bulk") is not None


def test_who_cannot_be_had_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contest(tmp_path, monkeypatch, ["missing", "closed", "good"]) as (scene, entered):
        assert [entrant.key for entrant in scene.entrants] == ["good"]
    # In one line, without addresses and folders of this machine.
    assert entered.skipped == {
        "missing": "needs a moon: (address) and a ladder",
        "closed": "no tables in schema.sql",
    }
    assert entered.versions == {"good": {"toy": "1.0"}}


def test_a_run_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contest(tmp_path, monkeypatch, ["good"], seconds=-1) as (scene, _):
        drain.run(scene)
    assert scene.cut_short
    assert scene.board.results == []
    assert scene.errors == {}


def test_a_limit_interrupts_what_waits() -> None:
    with pytest.raises(TookTooLong, match="this took more than 0 s"), within(0.2, "this"):
        time.sleep(30)
    with within(30, "that"):
        pass
    # Nothing is left of it; the timer of pytest may be.
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    assert left == 0 or left > 30


def test_a_limit_within_another_leaves_that_in_force() -> None:
    def wait() -> None:
        with pytest.raises(TookTooLong, match="inner"), within(0.2, "inner"):
            time.sleep(30)
        time.sleep(30)

    with pytest.raises(TookTooLong, match="outer took more than 3 s"), within(3, "outer"):
        wait()
