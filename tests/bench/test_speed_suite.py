"""Two versions are compared, each with its own sources, and only by what both have."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest

from bench.figures import Figure
from bench.place import open_place
from bench.rivals.trunkline import open_trunkline
from bench.speed import checkout
from bench.speed.floor import FLOORED, with_floor
from bench.speed.pairs import compare, in_order
from bench.suites import SUITES
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server

ROOT = Path(__file__).parents[2]
_SCHEMA = "trunkline" + "_internal"

COMPARED = ("drain", "enqueue", "claim_complete", "limits_wide", "limits_keys", "wal")
# Ratios within one version; tests of other suites run these measures.
ALONE = {
    "depth",
    "fairness",
    "held_snapshot",
    "limits_held_snapshot",
    "limits_spent",
    "soak",
}
PROMISED = {
    "bulk_enqueue_vs_before",
    "claim_complete_vs_before",
    "drain_1_vs_before",
    "drain_2_vs_before",
    "enqueue_batch_vs_before",
    "enqueue_many_vs_before",
    "enqueue_vs_before",
    "limits_keys_rate_2_ratio",
    "limits_keys_rate_2_vs_before",
    "limits_keys_slots_2_ratio",
    "limits_keys_slots_2_vs_before",
    "limits_wide_rate_2_ratio",
    "limits_wide_rate_2_vs_before",
    "limits_wide_rate_4_ratio",
    "limits_wide_slots_4_ratio",
    "limits_wide_slots_4_vs_before",
    "single_enqueue_vs_before",
}
LOG_RATIOS = {
    "wal_100_vs_before",
    "wal_8k_vs_before",
    "wal_200k_vs_before",
    "wal_keys_slots_vs_before",
    "wal_keys_rate_vs_before",
}

needs_history = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="the other version comes from the repository's history"
)


@pytest.mark.slow
@needs_history
def test_every_compared_figure_is_printed(server: Server, tmp_path: Path) -> None:
    only = [word for name in COMPARED if name != "wal" for word in ("--only", name)]
    result = run_bench(
        *("speed", "--before", "HEAD", "--quick", *only, "--dsn", server.dsn("trunkline")),
        TRUNKLINE_BENCH_CACHE=str(tmp_path),
    )
    figures = figures_of(result)
    assert figures.keys() >= PROMISED
    assert {key: figures[key] for key in PROMISED if not figures[key] > 0} == {}
    assert figures["drain_faults"] == figures["limits_wide_faults"] == 0
    assert [path.name for path in tmp_path.glob("before-*")] == [f"before-{figures['before']}"]
    assert databases_left(server, figures) == []


@pytest.mark.slow
@needs_history
def test_the_same_sources_write_the_same_log(tmp_path: Path) -> None:
    """On a server of the bench, because the log of a shared one has records of other tests."""
    result = run_bench(
        *("speed", "--before", "HEAD", "--quick", "--only", "wal"),
        TRUNKLINE_BENCH_CACHE=str(tmp_path),
    )
    ratios = {key: value for key, value in figures_of(result).items() if key in LOG_RATIOS}
    assert ratios.keys() == LOG_RATIOS
    assert {key: ratio for key, ratio in ratios.items() if not 0.9 < ratio < 1.1} == {}


def test_the_suite_has_every_measure_that_speed_is_judged_by() -> None:
    assert set(SUITES["speed"].measures) == {*COMPARED, *ALONE}


def test_an_unknown_commit_is_refused(tmp_path: Path) -> None:
    result = run_bench("--before", "no-such-commit", TRUNKLINE_BENCH_CACHE=str(tmp_path))
    assert result.returncode == 2
    assert "--before: 'no-such-commit' is not a commit of this repository" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed",), "the suite speed needs --before COMMIT"),
        (("flow", "--before", "HEAD"), "argument --before: only with the suite speed"),
        (("flow", "--floor", "0.98"), "argument --floor: only with the suite speed"),
    ],
)
def test_a_commit_belongs_to_the_suite_speed(arguments: tuple[str, ...], message: str) -> None:
    result = run_bench(*arguments)
    assert result.returncode == 2
    assert message in result.stderr


@needs_history
def test_a_commit_is_checked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "CACHE", tmp_path)
    version = checkout.check_out("HEAD")
    mark = version.sources / "mark"
    mark.touch()
    assert checkout.check_out(version.commit[:12]).sources == version.sources
    assert mark.exists()


def test_the_other_version_runs_its_own_code_and_schema(server: Server, tmp_path: Path) -> None:
    """Changed sources stand for another commit: its comment and its module are used."""
    sources = tmp_path / "src"
    shutil.copytree(ROOT / "src", sources)
    view = sources / "trunkline/sql/queue/views/tasks.sql"
    text = view.read_text(encoding="utf-8")
    at = text.index("comment on view trunkline.tasks is '") + len(
        "comment on view trunkline.tasks is '"
    )
    view.write_text(f"{text[:at]}Before: {text[at:]}", encoding="utf-8")
    with open_place(server.dsn("trunkline"), before=sources) as place:
        assert place.before is not None
        assert _comment(place.before.dsn_of("template")).startswith("Before: ")
        assert not _comment(place.dsn_of("template")).startswith("Before: ")
        with open_trunkline(place) as ours, open_trunkline(place.before) as theirs:
            assert Path(_package(ours.environment)).is_relative_to(ROOT / "src")
            assert Path(_package(theirs.environment)).is_relative_to(sources)


def _comment(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select obj_description('trunkline.tasks'::regclass, 'pg_class')"
        ).fetchone()
    assert row is not None
    return str(row[0])


def _package(environment: Mapping[str, str]) -> str:
    """Return where a process of a version imports the package from."""
    code = "import trunkline; print(trunkline.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_a_ratio_is_the_median_of_paired_repetitions() -> None:
    values = {"before": [10.0, 100.0, 40.0], "now": [20.0, 50.0, 40.0]}
    figures = {figure.key: figure for figure in compare("f", "f", values, goal=1.1)}
    assert figures["f_vs_before"].value == 1.0
    assert figures["f_vs_before"].verdict == "MISSED"
    assert (figures["f_before"].value, figures["f_now"].value) == (40.0, 40.0)
    assert figures["f_vs_before_best"].value == 0.5
    assert figures["f_vs_before_least"].value == 0.5
    assert figures["f_vs_before_most"].value == 2.0


def test_a_floor_is_the_goal_for_plain_jobs_alone() -> None:
    keys = ("drain_1", "drain_2", "single_enqueue", "enqueue", "bulk_enqueue", "claim_complete")
    figures = [Figure(f"{key}_vs_before", 0.975, key, goal=0.97) for key in keys]
    assert {figure.verdict for figure in with_floor(figures, None)} == {"met"}
    floored = with_floor(figures, 0.98)
    missed = [figure.text for figure in floored if figure.verdict == "MISSED"]
    assert missed == ["drain_1", "drain_2", "single_enqueue", "enqueue"]
    # The suite has figures of these names.
    assert FLOORED <= PROMISED


def test_the_version_that_goes_first_alternates() -> None:
    orders = [list(in_order(["before", "now"], repetition)) for repetition in range(3)]
    assert orders == [["before", "now"], ["now", "before"], ["before", "now"]]


def test_only_one_folder_of_the_bench_names_internal_tables() -> None:
    naming = {
        path.relative_to(ROOT / "bench").parts[0]
        for path in (ROOT / "bench").rglob("*.py")
        if _SCHEMA in path.read_text(encoding="utf-8")
    }
    assert naming == {"internals"}
