"""A pytest plugin that writes each test's outcome to a file as one line of JSON.

It is copied next to the tests and does not import this package.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_FILE = "MUTANTS_REPORT"


class _Witness:
    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.when == "call":
            self._write(report.nodeid, str(report.when), report.failed, report.longreprtext)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid, "collect", True, report.longreprtext)

    def _write(self, test: str, phase: str, failed: bool, text: str) -> None:
        lines = [line for line in text.splitlines() if line.startswith("E ")] or [text[-300:]]
        record = {
            "test": test,
            "phase": phase,
            "failed": failed,
            "timeout": "Failed: Timeout" in text,
            "reason": lines[0][:300] if failed else "",
        }
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    # Only in the main process, to which workers of pytest-xdist report.
    if _FILE in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Witness(Path(os.environ[_FILE])))
