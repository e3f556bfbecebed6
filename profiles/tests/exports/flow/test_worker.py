"""A real worker process: it renders, stops, and dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profiles.tests.exports.conftest import Exports
from tests.support import servers
from tests.support.environments import ROOT
from tests.support.waiting import until
from trunkline.artifacts import LocalStore

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(exports: Exports, tmp_path: Path) -> Iterator[Start]:
    """Start a worker process."""
    if exports.database.server.major != servers.majors()[-1]:
        pytest.skip("workers behave the same on each server")
    started = []

    def begin(renderer: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "TRUNKLINE_DSN": exports.database.dsn,
            "TRUNKLINE_STORE": (tmp_path / "store").as_uri(),
            "TRUNKLINE_EXPORTS_RENDERER": renderer,
        }
        with (tmp_path / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trunkline_profiles.exports"],
                env=environment,
                stdout=log,
                stderr=log,
                cwd=ROOT,
            )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


SLOW = "profiles.tests.exports.slow:renderer"


def ended(exports: Exports, job: Any) -> Any:
    finals = {"completed", "failed", "cancelled"}
    until(lambda: exports.job(job).status in finals, "the export has ended")
    return exports.job(job)


def test_ex_81_a_worker_completes_and_fails_exports(
    exports: Exports, start: Start, tmp_path: Path
) -> None:
    """EX-22, EX-24, EX-33, EX-63, EX-70, EX-81: file, history, permanent errors, and its log."""
    job = exports.create(exports.document("Secret title"))
    gone = exports.create(document := exports.document())
    exports.owner.execute("alter table exports.documents disable trigger document_deleted")
    exports.producer.connection.execute("delete from exports.documents where id = %s", (document,))
    start("plain")
    assert ended(exports, job).status == "completed"
    content = b"".join(LocalStore(tmp_path / "store").read(exports.history_of(job).file_path))
    assert content.startswith(b"%PDF")
    assert len(content) == exports.history_of(job).file_size
    failed = ended(exports, gone)
    assert (failed.status, failed.attempts) == ("failed", 1)
    assert failed.error_message == "The document no longer exists."
    exports.set(storage_bytes=2 << 20)
    full = exports.create()
    exports.set(storage_bytes=10)
    assert ended(exports, full).error_message.startswith("Your storage is full")
    assert len(exports.history()) == 1
    log = (tmp_path / "worker.log").read_text()
    assert f"export {job} of user {exports.user} completed" in log
    assert "Secret" not in log
    assert "Builds queues" not in log


def test_ex_35_a_render_is_stopped_by_a_cancellation(exports: Exports, start: Start) -> None:
    """EX-05, EX-35, EX-S04: no file and no row remain."""
    start(SLOW)
    job = exports.create()
    until(lambda: exports.job(job).progress == 75, "the export is rendered")
    assert exports.cancel(job) == "cancelling"
    assert ended(exports, job).status == "cancelled"
    assert exports.history() == []


def test_ex_76_the_export_of_a_killed_worker_comes_back(exports: Exports, start: Start) -> None:
    """EX-34, EX-76, EX-S10: by its missing pulse, long before the lease."""
    worker = start(SLOW)
    job = exports.create()
    until(lambda: exports.job(job).progress == 75, "the export is rendered")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    exports.later("2 minutes")
    exports.operator.value("select exports.reset_stuck_jobs()")
    row = exports.job(job)
    assert (row.status, row.attempts, row.error_message) == ("pending", 1, "Job timed out")
    exports.later("2 minutes")
    start("plain")
    row = ended(exports, job)
    assert (row.status, row.attempts) == ("completed", 2)


def test_ex_64_a_worker_runs_the_cleanup_and_removes_the_file(
    exports: Exports, start: Start, tmp_path: Path
) -> None:
    """EX-64, EX-84, EX-S08: as the schedule does it."""
    start("plain")
    job = exports.create()
    assert ended(exports, job).status == "completed"
    path = tmp_path / "store" / exports.history_of(job).file_path
    assert path.exists()
    exports.owner.execute(
        "update exports.export_history set expires_at = trunkline.clock() - interval '1 hour'"
    )
    cleanup = exports.operator.value("select (trunkline.enqueue('cleanup_expired_exports')).job_id")
    state = "select state from trunkline.jobs where job_id = %s"
    until(lambda: exports.operator.value(state, cleanup) == "completed", "the cleanup")
    (row,) = exports.rows("select result from trunkline.job(%s)", cleanup)
    assert row.result == {"deleted": 1}
    until(lambda: not path.exists(), "the file is gone")

    def marked() -> bool:
        # The store confirms the removal after the file is gone.
        exports.operator.value("select trunkline.run_duty('exports_mark_removed')")
        return exports.history_of(job).deleted_at is not None

    until(marked, "the row is marked")
