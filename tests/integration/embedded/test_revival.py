"""A worker on the embedded server brings it up again when it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.waiting import until
from trunkline.client import load
from trunkline.db.dsn import DSN_VARIABLE
from trunkline.embedded import acquire

APP = """
from trunkline import Trunkline

app = Trunkline()


@app.task
async def double(number: int) -> int:
    return 2 * number
"""


def test_a_worker_revives_the_server_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "revival_app.py").write_text(APP, "utf-8")
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    app = load("revival_app:app")
    double = app.tasks["double"]
    with acquire() as server, app.sync:
        assert double.sync.enqueue(number=1).created
        worker = subprocess.Popen([sys.executable, "-m", "trunkline", "worker", "revival_app:app"])
        try:
            assert double.sync.enqueue(number=4).wait(timeout=300) == 8
            before = server.pid
            assert before is not None
            os.kill(before, signal.SIGKILL)
            until(lambda: _answers(server.dsn), "the worker starts the server again")
            assert server.pid != before
            assert double.sync.enqueue(number=21).wait(timeout=300) == 42
        finally:
            worker.terminate()
            assert worker.wait(60) == 0


def test_up_without_an_application_revives_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    with acquire() as server:
        caretaker = subprocess.Popen([sys.executable, "-m", "trunkline", "up", "--no-api"])
        try:
            until(lambda: _has_run_duties(server.dsn), "the duties have run")
            before = server.pid
            assert before is not None
            os.kill(before, signal.SIGKILL)
            until(lambda: _answers(server.dsn), "the server is back")
            assert server.pid != before
        finally:
            caretaker.terminate()
            assert caretaker.wait(60) == 0


def _has_run_duties(dsn: str) -> bool:
    try:
        with psycopg.connect(dsn) as connection:
            row = connection.execute(
                "select bool_and(succeeded_at is not null) from trunkline.duties"
            ).fetchone()
    except psycopg.Error:
        return False
    return row == (True,)


def _answers(dsn: str) -> bool:
    try:
        with psycopg.connect(dsn) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False
