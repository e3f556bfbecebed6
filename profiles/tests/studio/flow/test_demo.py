"""The demonstration, as somebody types it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from trunkline_profiles.studio.handlers.mp3 import measure

PROGRAM = "import sys; from trunkline.cli.main import main; sys.exit(main())"


@pytest.mark.slow
def test_the_demonstration_balances(tmp_path: Path) -> None:
    """TA-26, TA-27, TA-50, TA-52: a worker is killed with a file that it had not published."""
    kept = tmp_path / "order"
    options = ["--documents", "4", "--keep", str(kept), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "profile", "demo", "studio", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    account: dict[str, Any] = json.loads(done.stdout)
    assert account["balanced"] is True
    assert (account["tasks"], account["completed"], account["percent"]) == (12, 12, 100)
    assert account["artifacts"] == account["files"] == account["equal"] == account["opened"] == 18
    assert (account["killed"], account["orphans"], account["missing"]) == (1, 0, 0)
    assert account["unpublished"].endswith(".mp3")
    assert account["reclaimed"] >= 1
    assert account["paid"] == 4
    assert account["falls"] == 0
    assert len(list(kept.iterdir())) == 18
    for name in ("chapter1.pdf", "full_nuclear.pdf"):
        with pikepdf.open(kept / name) as document:
            assert len(document.pages) >= 1
    assert measure((kept / "chapter4.mp3").read_bytes()).duration > 1


@pytest.mark.parametrize(
    ("profile", "message"), [("studio", "is not empty"), ("executor", "makes no files")]
)
def test_files_are_kept_in_an_empty_folder_only(tmp_path: Path, profile: str, message: str) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "profile", "demo", profile, "--keep", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert mine.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [mine]
