"""The fixtures for pytest, as a project of its own uses them."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

JOBS = """
from trunkline import Trunkline

app = Trunkline("host=nowhere.invalid")

@app.task
def double(number: int) -> int:
    return 2 * number

@app.task
async def triple(number: int) -> int:
    return 3 * number
"""
CONFIGURATION = """
[pytest]
trunkline_app = jobs:app
filterwarnings = error
"""
TESTS = """
import asyncio
from jobs import app, double, triple

def test_one(trunkline_sandbox):
    double.sync.enqueue(4)
    trunkline_sandbox.assert_enqueued(double, number=4)
    assert trunkline_sandbox.drain().completed == 1

def test_another_starts_with_nothing(trunkline_sandbox):
    trunkline_sandbox.refute_enqueued(double)
    assert trunkline_sandbox.run_inline(triple.request(5)) == 15

def test_asynchronous(trunkline_async_sandbox):
    async def main():
        await double.enqueue(1)
        assert (await trunkline_async_sandbox.drain()).completed == 1
        return await trunkline_async_sandbox.run_inline(triple.request(1))

    assert asyncio.run(main()) == 3

def test_without(): ...
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            # Whether or not the entry point is installed.
            "-p",
            "no:trunkline",
            "-p",
            "trunkline.testing.plugin",
            "-p",
            "no:cacheprovider",
            *arguments,
        ],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_jobs.py").write_text(TESTS)
    (tmp_path / "tmp").mkdir()
    return tmp_path


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_project_has_its_sandboxes_and_nothing_stays(
    project: Path, arguments: tuple[str, ...]
) -> None:
    result = run(project, *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 passed" in result.stdout
    assert not list((project / "tmp").glob("trunkline-sandbox-*"))


def test_a_project_that_names_no_application_receives_a_hint(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    result = run(project, "-k", "one or without")
    assert "1 passed, " in result.stdout
    assert "set trunkline_app" in result.stdout


def test_a_fixture_of_the_project_may_name_it(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef trunkline_app():\n"
        "    from jobs import app\n    return app\n"
    )
    result = run(project, "-k", "one")
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_pytest_finds_it_by_itself() -> None:
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert project["entry-points"]["pytest11"] == {"trunkline": "trunkline.testing.plugin"}


def test_the_plugin_costs_nothing_where_it_is_not_used() -> None:
    """It is imported at every start of pytest: neither the driver nor the client come along."""
    code = (
        "import sys, trunkline.testing.plugin\n"
        "heavy = {'psycopg', 'msgspec', 'trunkline.client'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
