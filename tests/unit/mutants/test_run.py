"""A break that tests notice is reported as noticed, one that they do not as survived."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import REPOSITORY, until
from tests.unit.mutants import tiny
from tools.mutants import report, sample
from tools.mutants.baseline import BaselineFailed
from tools.mutants.project import Project
from tools.mutants.run import Options, Run
from tools.mutants.state import Result

GUARD = "if member and amount > 100:"
# What each break makes of the guard.
MEMBERS = "if amount > 100:"
ALL = "if True:"
AMOUNTS = "if member:"
BOUND = "if member and amount >= 100:"


def prepared(project: Project, folder: Path, *breaks: str, **options: Any) -> Run:
    """A run of these breaks alone, named by the line that they write."""
    keys = [one.key for one in sample.draw(project, seed=1, count=100) if one.after in breaks]
    assert len(keys) == len(breaks)
    return Run(project, Options(count=100, only=keys, **options), folder)


def run(project: Project, folder: Path, *breaks: str, **options: Any) -> dict[str, Result]:
    """Judge these breaks."""
    whole = prepared(project, folder, *breaks, **options)
    whole.go()
    return {result.after: result for result in whole.results}


def outcomes(results: dict[str, Result]) -> dict[str, str]:
    return {after: result.outcome for after, result in results.items()}


def test_noticed_and_survived_mutants_are_counted_and_the_tree_stays_unchanged(
    tmp_path: Path,
) -> None:
    project = tiny.make(tmp_path / "shop")
    before = tiny.content(project.root)
    results = run(project, tmp_path / "state", MEMBERS, BOUND)
    assert outcomes(results) == {MEMBERS: "noticed", BOUND: "survived"}
    assert results[MEMBERS].test == "tests/till/test_till.py::test_others_pay_all"
    assert tiny.content(project.root) == before
    found = list(results.values())
    shown = report.table(found, dict.fromkeys((one.key for one in found), "till"))
    assert f"  - {GUARD}\n  + {BOUND}" in shown
    facts = json.loads(json.dumps(report.summary(found, seed=1)))
    assert (facts["noticed"], facts["survived"], facts["score"]) == (1, 1, 0.5)


def test_an_interrupted_run_goes_on_without_repeating_what_it_has(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop")
    told: list[str] = []

    def interrupt(result: Result) -> None:
        told.append(result.key)
        os.kill(os.getpid(), signal.SIGINT)

    breaks = (MEMBERS, AMOUNTS, BOUND)
    first = prepared(project, tmp_path / "state", *breaks)
    first.go(interrupt)
    assert 1 <= len(told) < len(first.mutations)
    again = prepared(project, tmp_path / "state", *breaks)
    assert [result.key for result in again.results] == told
    again.go(lambda result: told.append(result.key))
    assert sorted(told) == sorted(mutation.key for mutation in again.mutations)
    third = prepared(project, tmp_path / "state", *breaks)
    third.go(lambda result: pytest.fail(f"{result.key} was tried again"))
    assert len(third.results) == len(told)


def test_a_new_test_gives_survivors_another_chance(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop")
    run(project, tmp_path / "state", ALL, BOUND)
    more = "\ndef test_the_bound():\n    assert discount(100, True) == 100\n"
    tiny.write(project.root, "tests/till/test_till.py", tiny.TESTS + more)
    told: list[str] = []
    again = prepared(project, tmp_path / "state", ALL, BOUND)
    again.go(lambda result: told.append(result.after))
    assert told == [BOUND]
    assert {result.outcome for result in again.results} == {"noticed"}


def test_a_baseline_that_fails_ends_the_run(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop", "def test_nothing_works():\n    assert False\n")
    with pytest.raises(BaselineFailed, match="test_nothing_works"):
        run(project, tmp_path / "state", BOUND)
    # Without it first, a test that always fails is no witness.
    results = run(project, tmp_path / "state", BOUND, full_baseline=False)
    assert outcomes(results) == {BOUND: "chance"}


def test_a_failure_that_does_not_repeat_is_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = """
import os, pathlib
import pytest
from shop.till import discount

def test_once():
    mark = pathlib.Path(os.environ["MARK"])
    if discount(100, True) != 100 and not mark.exists():
        mark.touch()
        assert False

@pytest.fixture
def till():
    yield
    assert discount(100, True) == 100

def test_torn_down(till):
    assert discount(200, True) == 190
"""
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    results = run(tiny.make(tmp_path / "shop", once), tmp_path / "state", BOUND)
    assert outcomes(results) == {BOUND: "chance"}
    assert "test_once" in results[BOUND].test
    assert "test_torn_down" in results[BOUND].test


def test_a_break_with_which_pytest_cannot_start_is_noticed(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop")
    plugin = "from shop.till import discount\nassert discount(100, True) == 100\n"
    tiny.write(project.root, "conftest.py", plugin)
    results = run(project, tmp_path / "state", BOUND, full_baseline=False)
    assert outcomes(results) == {BOUND: "noticed"}


def test_what_cannot_be_installed_is_invalid(tmp_path: Path) -> None:
    check = ["-c", "import shop.till, sys; sys.exit(shop.till.discount(200, True) != 190)"]
    project = tiny.make(tmp_path / "shop", checks=lambda _: [check])
    results = run(project, tmp_path / "state", "if False:", AMOUNTS)
    assert outcomes(results) == {"if False:": "invalid", AMOUNTS: "survived"}


def test_tests_that_never_end_count_as_noticed(tmp_path: Path) -> None:
    hanging = """
from shop.till import discount

def test_ends():
    while discount(200, True) != 190:
        pass
"""
    project = tiny.make(tmp_path / "shop", hanging)
    results = run(project, tmp_path / "state", "if False:", full_baseline=False, timeout=0.1)
    assert outcomes(results) == {"if False:": "timeout"}


# Says that it runs, then waits to be killed.
_WAITING = """
import os, pathlib, signal

def test_waits():
    mark = pathlib.Path(os.environ["MARK"])
    if "member and" not in pathlib.Path("src/shop/till.py").read_text():
        mark.write_text(str(os.getpid()))
        signal.pause()
"""
_PROGRAM = """
import sys
from pathlib import Path
from tests.unit.mutants import tiny
from tools.mutants.run import Options, Run

folder = Path(sys.argv[1])
Run(tiny.make(folder / "shop", Path(sys.argv[2]).read_text()), Options(count=100), folder).go()
"""


def test_a_killed_run_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(_WAITING)
    mark = tmp_path / "mark"
    copies = tmp_path / "temporary"
    copies.mkdir()
    variables = {"MARK": str(mark), "TMPDIR": str(copies), "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), str(tmp_path / "waiting.py")],
        env=os.environ | variables,
    )
    try:
        until(lambda: mark.exists() and bool(mark.read_text()), "a mutated test runs")
    finally:
        process.kill()
        process.wait()
    os.killpg(int(mark.read_text()), signal.SIGKILL)
    assert (tmp_path / "shop" / "src" / "shop" / "till.py").read_text() == tiny.SOURCE
    assert list(copies.iterdir()) != []
