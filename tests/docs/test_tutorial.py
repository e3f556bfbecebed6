"""The tutorial, followed to the letter: a new folder, a new environment, the wheel as built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.running import Session, environment

# pip fetches what the wheel depends on, and one job of the story waits for a dead worker.
_PATIENCE = 900.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tutorial_works_for_a_newcomer(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (wheel,) = build_wheel(tmp_path / "dist")
    shutil.copy(wheel, folder)
    newcomer = environment(home=tmp_path / "home", dsn=None, binaries=Path(sys.base_prefix) / "bin")
    page = pages.DOCS / "tutorial.md"
    with Session(folder, newcomer, patience=_PATIENCE) as reader:
        try:
            steps = pages.blocks(page)
            for block in steps:
                reader.do(block)
            # A page that was read as empty would prove nothing.
            assert len(steps) > 10
        finally:
            stop_server(folder, newcomer)


def build_wheel(target: Path) -> list[Path]:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=pages.ROOT,
        check=True,
        capture_output=True,
    )
    return list(target.glob("*.whl"))


def stop_server(folder: Path, newcomer: dict[str, str]) -> None:
    """The page stops it at its end; a reader who gave up did not get there."""
    program = folder / ".venv" / "bin" / "trunkline"
    if program.exists():
        subprocess.run(
            [str(program), "db", "stop", "--force"], env=newcomer, check=False, capture_output=True
        )
