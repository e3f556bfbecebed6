"""A break that tests notice is reported as noticed, one that they do not as survived."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, until
from tests.unit.mutants import tiny
from tools.mutants import report
from tools.mutants.baseline import BaselineFailed
from tools.mutants.project import Project
from tools.mutants.run import Options, Run
from tools.mutants.state import Result

EVERYTHING = 100
GUARD = "if member and amount > 100:"
NOTICED = {
    "if amount > 100:",
    "if True:",
    "if False:",
    "if member and amount < 100:",
    "return 0",
}
SURVIVED = {"if member:", "if member and amount >= 100:"}


def run(project: Project, folder: Path, **options: object) -> dict[str, Result]:
    """Judge the whole sample; give the results by the line that was written."""
    settings = {"count": EVERYTHING, **options}
    whole = Run(project, Options(**settings), folder)  # type: ignore[arg-type]
    whole.go()
    return {result.after: result for result in whole.results}


def test_noticed_and_survived_are_told_apart_and_the_tree_is_left_alone(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop")
    before = tiny.content(project.root)
    results = run(project, tmp_path / "state")
    assert {after for after, one in results.items() if one.outcome == "noticed"} == NOTICED
    assert {after for after, one in results.items() if one.outcome == "survived"} == SURVIVED
    assert results["if amount > 100:"].test == "tests/till/test_till.py::test_others_pay_all"
    assert tiny.content(project.root) == before
    found = list(results.values())
    assert report.score(found) == round(len(NOTICED) / (len(NOTICED) + len(SURVIVED)), 3)
    shown = report.table(found, dict.fromkeys((one.key for one in found), "till"))
    assert f"  - {GUARD}\n  + if member:" in shown
    facts = json.loads(json.dumps(report.summary(found, seed=1)))
    assert (facts["noticed"], facts["survived"]) == (len(NOTICED), len(SURVIVED))


def test_an_interrupted_run_goes_on_without_repeating_what_it_has(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop")
    told: list[str] = []

    def interrupt(result: Result) -> None:
        told.append(result.key)
        os.kill(os.getpid(), signal.SIGINT)

    options = Options(count=EVERYTHING)
    first = Run(project, options, tmp_path / "state")
    first.go(interrupt)
    assert 1 <= len(told) < len(first.mutations)
    again = Run(project, options, tmp_path / "state")
    assert [result.key for result in again.results] == told
    again.go(lambda result: told.append(result.key))
    assert sorted(told) == sorted(mutation.key for mutation in again.mutations)
    third = Run(project, options, tmp_path / "state")
    third.go(lambda result: pytest.fail(f"{result.key} was tried again"))
    assert len(third.results) == len(told)


def test_a_new_test_gives_survivors_another_chance(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop")
    run(project, tmp_path / "state")
    more = "\ndef test_the_bound():\n    assert discount(100, True) == 100\n"
    tiny.write(project.root, "tests/till/test_till.py", tiny.TESTS + more)
    told: list[str] = []
    again = Run(project, Options(count=EVERYTHING), tmp_path / "state")
    again.go(lambda result: told.append(result.after))
    assert set(told) == SURVIVED
    assert Counter(result.outcome for result in again.results).keys() == {"noticed"}


def test_a_baseline_that_fails_ends_the_run(tmp_path: Path) -> None:
    project = tiny.make(tmp_path / "shop", "def test_nothing_works():\n    assert False\n")
    with pytest.raises(BaselineFailed, match="test_nothing_works"):
        run(project, tmp_path / "state")
    # Without it first, a test that always fails is no witness.
    results = run(project, tmp_path / "state", count=1, full_baseline=False)
    assert [one.outcome for one in results.values()] == ["chance"]


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
    results = run(tiny.make(tmp_path / "shop", once), tmp_path / "state")
    bound = results["if member and amount >= 100:"]
    assert bound.outcome == "chance"
    assert "test_once" in bound.test
    assert "test_torn_down" in bound.test


def test_what_cannot_be_installed_is_invalid(tmp_path: Path) -> None:
    check = ["-c", "import shop.till, sys; sys.exit(shop.till.discount(200, True) != 190)"]
    project = tiny.make(tmp_path / "shop", checks=lambda _: [check])
    results = run(project, tmp_path / "state")
    assert results["if False:"].outcome == "invalid"
    assert results["if member:"].outcome == "survived"


def test_tests_that_never_end_count_as_noticed(tmp_path: Path) -> None:
    hanging = """
from shop.till import discount

def test_ends():
    while discount(200, True) != 190:
        pass
"""
    project = tiny.make(tmp_path / "shop", hanging)
    options = {"count": EVERYTHING, "full_baseline": False}
    (key,) = (
        mutation.key
        for mutation in Run(project, Options(count=EVERYTHING), tmp_path / "state").mutations
        if mutation.after == "if False:"
    )
    results = run(project, tmp_path / "state", **options, only=[key], timeout=0.1)
    assert [one.outcome for one in results.values()] == ["timeout"]


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
