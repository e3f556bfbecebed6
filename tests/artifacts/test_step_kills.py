"""A worker is killed before each step of uploading and recording a large result of a step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

from tests.artifacts.sweeping import age_everything, files_of, sweep
from tests.support.calls import Calls
from tests.worker.scene import Scene
from trunkline.artifacts import LocalStore
from trunkline.db.calls import work

# Counts every call of the engine, before and after, and every rename: it dies at one of them.
_WORKER = """
import os, signal, sys
from trunkline.artifacts import (
    LocalStore, SyncLargeResults, SyncResultLimits, SyncStore, SyncUploads,
)
from trunkline.db.calls import work
from trunkline.db.calls.steps import record_steps
from trunkline.db.connect import connect
from trunkline.db.runner import run
from trunkline.handler.steps import SyncSteps

dsn, folder, die_at, log = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
passed = 0

def passing():
    global passed
    passed += 1
    if passed == die_at:
        os.kill(os.getpid(), signal.SIGKILL)

def renamed(*arguments, original=os.rename, **named):
    passing()
    return original(*arguments, **named)

os.rename = renamed
os.supports_dir_fd = os.supports_dir_fd | {os.open}

class Link:
    worker, main_task = "w", None
    def __init__(self, connection, job):
        self.connection = connection
        self.uploads = SyncUploads(self, job, SyncStore(LocalStore(folder)))
        self.large = SyncLargeResults(self.uploads, job, SyncResultLimits())
    def run(self, call):
        passing()
        answer = run(self.connection, call)
        passing()
        return answer
    def record(self, step):
        assert self.run(record_steps("w", [step])) == ["ok"]

def render():
    with open(log, "a") as lines:
        lines.write("run\\n")
    return "x" * 2_000_000

with connect(dsn) as connection:
    (job,) = run(connection, work.claim("w", None, 1, ["work"], None)).jobs
    link = Link(connection, job)
    steps = SyncSteps(link, job)
    value = steps.step("render", render, (), {}, key=None, retries=0, on_change="fail")
    assert value == "x" * 2_000_000
    link.run(work.complete("w", [job.job_id], [job.attempt]))
"""


def test_a_kill_between_upload_and_record_leaves_no_orphan(scene: Scene, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "files")
    log = tmp_path / "log"
    scene.register()
    kills = again = 0
    while True:
        job = _enqueued(scene)
        log.write_text("")
        if not _run(scene, store.folder, kills + 1, log):
            break
        kills += 1
        if scene.state(job) == "completed":
            continue
        [recorded] = scene.rows("select count(*) as steps from trunkline.job_steps(%s)", job)
        scene.call(work.fail("w", [job], [1], errors=[None], retryable=[True], delays=[0.0]))
        assert not _run(scene, store.folder, 0, log)
        assert scene.state(job) == "completed"
        # The function runs again exactly if its result was not recorded.
        runs = log.read_text().count("run")
        assert recorded.steps == 0 or runs == 1
        again += runs == 2
    assert kills > 8
    assert again > 4
    age_everything(scene.superuser, store)
    sweep(scene.database.dsn, store)
    known = {path for (path,) in scene.rows("select storage_path from trunkline.artifacts")}
    assert len(known) == kills + 1
    assert set(files_of(store)) == known


def _enqueued(scene: Scene) -> UUID:
    calls = Calls(scene.superuser)
    if not scene.value("select exists (select from trunkline.tasks where task = 'work')"):
        calls.register("work")
    calls.enqueue("work")
    job: UUID = scene.value("select job_id from trunkline.jobs where state = 'ready'")
    return job


def _run(scene: Scene, folder: Path, die_at: int, log: Path) -> bool:
    """Run the worker in a process; return whether it was killed."""
    arguments = [scene.database.dsn, str(folder), str(die_at), str(log)]
    ended = subprocess.run(
        [sys.executable, "-c", _WORKER, *arguments], check=False, capture_output=True, text=True
    )
    assert ended.returncode in {0, -9}, ended.stderr
    return ended.returncode != 0
