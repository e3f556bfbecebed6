"""The demonstration, as somebody types it."""

import json
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = "import sys; from trunkline.cli.main import main; sys.exit(main())"


@pytest.mark.slow
def test_the_demonstration_balances() -> None:
    """EX-18, EX-23, EX-81, EX-82, EX-85: over HTTP, with a real worker."""
    options = ["--documents", "4", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "profile", "demo", "exports", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    account: dict[str, Any] = json.loads(done.stdout)
    assert account["balanced"] is True
    assert (account["exports"], account["completed"], account["cancelled"]) == (7, 6, 1)
    assert account["most_at_once"] == 3
    assert (account["zip_entries"], account["downloaded"], account["files"]) == (4, 5, 6)
    assert account["seen"][-1] == 100
