"""The soak runs through its phases and detects lost and repeated jobs."""

import json
from pathlib import Path

import psycopg
import pytest

from bench.apps.slate import Slate
from bench.soak import sizes
from bench.soak.account import Part, Verdict, check, require_same_ends
from bench.soak.calls import Kind, Notes, TimedCall, read_calls
from bench.soak.filling import fill_in
from bench.soak.phases import plan
from bench.soak.specials import enqueue
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.jobs import bring_forward
from tests.support.servers import Server

KEYS = ["clean", "held", "writing", "filled", "after"]


@pytest.mark.slow
def test_it_runs_from_end_to_end(server: Server, tmp_path: Path) -> None:
    result = run_bench(
        "soak", "--quick", "--dsn", server.dsn("trunkline"), TRUNKLINE_BENCH_CACHE=str(tmp_path)
    )
    figures = figures_of(result)
    assert figures["soak_lost"] == 0
    assert figures["soak_repeated"] == 0
    assert figures["soak_capacity"] > figures["soak_rate"] > 0
    assert figures["soak_held_throughput_ratio"] > 0
    assert databases_left(server, figures) == []
    record = json.loads((tmp_path / "quick" / "soak.json").read_text(encoding="utf-8"))
    assert [phase["key"] for phase in record["phases"]] == KEYS
    for phase in record["phases"]:
        assert phase["arrived"] > 0
        assert phase["completed"] > 0
        assert phase["claim_p99"] > 0
    assert record["books"]["scheduled"]["jobs"] == sizes.QUICK.scheduled
    # Dead rows stay while a snapshot may still see them.
    assert record["phases"][1]["dead_most"] > 0
    assert (tmp_path / "quick" / "soak.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


@pytest.mark.parametrize("minutes", [0.25, 10, 12, 60])
def test_half_of_the_time_is_under_a_held_snapshot(minutes: float) -> None:
    phases = {phase.key: phase.seconds for phase in plan(minutes)}
    assert list(phases) == KEYS
    assert sum(phases.values()) == pytest.approx(minutes * 60)
    assert phases["held"] == minutes * 30
    assert phases["writing"] <= 62
    assert min(phases.values()) > 0


def test_notes_of_calls_are_read_back(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    assert list(read_calls(tmp_path)) == []
    notes.add(5, 2, Kind.CLAIM, 100)
    notes.add(9, 3, Kind.COMPLETE, -1)
    notes.close()
    assert list(read_calls(tmp_path)) == [TimedCall(5, 2, 0, 100), TimedCall(9, 3, 2, -1)]


def ended(connection: psycopg.Connection, *numbers: int) -> None:
    """Complete jobs with these numbers."""
    calls = Calls(connection)
    calls.register("noop")
    calls.enqueue_many([{"task": "noop", "payload": {"number": number}} for number in numbers])
    calls.batch("complete", "w", calls.claim("w", len(numbers)).attempts)


def noted(path: Path, jobs: int, *numbers: int) -> Slate:
    slate = Slate.create(path, jobs)
    for number in numbers:
        slate.note(number)
    return slate


PARTS = [Part("first", 0, 4, 3), Part("second", 4, 8, 4)]


@pytest.mark.parametrize(
    ("recorded", "ran", "verdicts"),
    [
        ([0, 1, 2, 4, 5, 6, 7], [0, 1, 2, 4, 5, 6, 7], [(0, 0), (0, 0)]),
        # One never ended, one never ran, one ended twice, one ran twice.
        ([0, 1, 4, 5, 6, 7], [0, 1, 2, 4, 5, 6, 7], [(1, 0), (0, 0)]),
        ([0, 1, 2, 4, 5, 6, 7], [0, 1, 2, 5, 6, 7], [(0, 0), (1, 0)]),
        ([0, 1, 2, 4, 4, 5, 6, 7], [0, 1, 2, 4, 5, 6, 7], [(0, 0), (0, 1)]),
        ([0, 1, 2, 4, 5, 6, 7], [0, 1, 1, 2, 4, 5, 6, 7], [(0, 1), (0, 0)]),
    ],
)
def test_lost_and_repeated_jobs_are_counted(
    database: Database,
    tmp_path: Path,
    recorded: list[int],
    ran: list[int],
    verdicts: list[tuple[int, int]],
) -> None:
    with database.superuser() as connection:
        ended(connection, *recorded)
        found = check(connection, noted(tmp_path / "slate", 8, *ran), PARTS)
    assert [(found[part].lost, found[part].repeated) for part in ("first", "second")] == verdicts
    assert sum(verdict.ended for verdict in found.values()) == len(recorded)


def test_records_of_workers_must_agree_with_the_database() -> None:
    noted = [TimedCall(1, 1, Kind.COMPLETE, 60), TimedCall(2, 1, Kind.COMPLETE, 40)]
    noted += [TimedCall(3, 1, Kind.CLAIM, 500), TimedCall(4, 1, Kind.COMPLETE, -1)]
    require_same_ends(noted, {"first": Verdict(100, 100, 0, 0)})
    with pytest.raises(RuntimeError, match="recorded 100 ended jobs, the database has 90"):
        require_same_ends(noted, {"first": Verdict(100, 90, 10, 0)})


def test_inserted_jobs_do_not_count_as_work(database: Database, tmp_path: Path) -> None:
    with database.superuser() as connection:
        connection.execute("select trunkline.register_task(p_task => 'noop')")
        fill_in(connection, history=10, first=4, scheduled=4)
        # They have not run, because they are not due.
        parts = [Part("first", 0, 4, 0), Part("second", 4, 8, 4)]
        found = check(connection, noted(tmp_path / "slate", 8), parts)
        assert found == {"first": Verdict(0, 0, 0, 0), "second": Verdict(4, 0, 0, 0)}
        # They are due every six hours: the first is late now.
        bring_forward(connection, "7 hours")
        found = check(connection, noted(tmp_path / "slate", 8), parts)
        assert found["second"] == Verdict(4, 0, lost=1, repeated=0)


def test_a_special_job_is_one_more_job(database: Database) -> None:
    with database.superuser() as connection:
        connection.execute("select trunkline.register_task(p_task => 'noop')")
        enqueue(connection, 7, 20)
        row = connection.execute("select payload, priority from trunkline.jobs").fetchone()
    assert row == ({"number": 7}, 20)
