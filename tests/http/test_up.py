"""`trunkline up` serves the API beside the duties, on an embedded server of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2

from tests.support.waiting import until

_PORT = re.compile(r"running on http://127.0.0.1:(\d+)")
_PROGRAM = [sys.executable, "-m", "trunkline"]


def test_up_serves_the_api_and_lets_its_login_act_for_callers(tmp_path: Path) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")
    } | {
        "TRUNKLINE_HOME": str(tmp_path / "pg"),
        "TRUNKLINE_EMBEDDED": "1",
        "TRUNKLINE_API_PORT": "0",
    }
    log = tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen([*_PROGRAM, "up"], env=environment, stdout=file, stderr=file)
        try:
            until(
                lambda: process.poll() is not None or _PORT.search(log.read_text()) is not None,
                "the API listens",
            )
            port = _PORT.search(log.read_text())
            assert port is not None, log.read_text()
            url = f"http://127.0.0.1:{port[1]}"
            assert httpx2.get(f"{url}/ready").status_code == 200, log.read_text()
            created = subprocess.run(
                [*_PROGRAM, "keys", "create", "dev", "--role", "operator"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            headers = {"Authorization": f"Bearer {created.stdout.split()[-1]}"}
            assert httpx2.get(f"{url}/v1/duties", headers=headers).json()["duties"]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
