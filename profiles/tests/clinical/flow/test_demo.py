"""The demonstration, as somebody types it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = "import sys; from trunkline.cli.main import main; sys.exit(main())"


def demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "profile", "demo", "clinical", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_the_demonstration_balances() -> None:
    """CP-73, CP-03, CP-59, CP-61: a worker is killed, calls are refused, and nothing is over."""
    account: dict[str, Any] = json.loads(demo("--documents", "5", "--json").stdout)
    assert account["balanced"] is True
    assert (account["documents"], account["uploads"]) == (5, 6)
    assert (account["completed"], account["stopped"], account["waiting"]) == (4, 1, 0)
    assert (account["workers_killed"], account["jobs_dead"], account["unaudited"]) == (1, 1, 0)
    assert account["reclaimed"] >= 1
    assert account["over"] == {}
    assert account["used"]["concurrency"] <= account["allowed"]["concurrency"]
    # Three passes for each, three refusals, and what died in the middle was asked again.
    assert account["refused"] == account["refused_on_purpose"] == 3
    assert account["calls"] > 4 * 3 + 3
    assert account["tokens_charged"] >= account["tokens"] > 0
    assert account["waited"] > 0


@pytest.mark.slow
def test_the_demonstration_without_tools_names_them(tmp_path: Path) -> None:
    """CP-70: OCR is left to others; the account shows what waits."""
    unshare = shutil.which("unshare")
    if unshare is not None:
        # The embedded server needs it where the tests run as root.
        (tmp_path / "unshare").symlink_to(unshare)
    text = demo("--documents", "3", PATH=str(tmp_path)).stdout
    assert "not installed here: ImageMagick, poppler, tesseract" in text
    assert "3: 0 completed, 1 stopped by the security check, 2 waiting" in text
    assert "apt-get install" in text
