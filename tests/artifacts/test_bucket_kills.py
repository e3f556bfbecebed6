"""A worker is killed at each request, chunk and call of an upload to a bucket."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
import threading
from uuid import UUID

from tests.artifacts.between import between
from tests.artifacts.sweeping import files_of, sweep
from tests.support.calls import Calls
from tests.support.internals import storage
from tests.support.s3_servers import S3Server
from tests.worker.scene import Scene
from trunkline.artifacts import ObjectStore, Store
from trunkline.db.calls import work

# Counts calls of the engine and chunks, and dies at one of them. The large file takes two parts.
_WORKER = """
import os, pickle, signal, sys
from trunkline.artifacts import SyncStore, SyncUploads
from trunkline.db.calls import work
from trunkline.db.connect import connect
from trunkline.db.runner import run

dsn, store, die_at = sys.argv[1], pickle.loads(bytes.fromhex(sys.argv[2])), int(sys.argv[3])
step = 0

def passing():
    global step
    step += 1
    if step == die_at:
        os.kill(os.getpid(), signal.SIGKILL)

def content():
    for _ in range(3):
        passing()
        yield b"x" * (3 << 20)

class Backend:
    worker = "w"
    def __init__(self, connection):
        self.connection = connection
    def run(self, call):
        passing()
        answer = run(self.connection, call)
        passing()
        return answer

with connect(dsn) as connection:
    (job,) = run(connection, work.claim("w", None, 1, ["work"], None)).jobs
    backend = Backend(connection)
    uploads = SyncUploads(backend, job, SyncStore(store))
    uploads.add("page.bin", content())
    uploads.add("small.txt", b"content")
    backend.run(work.complete("w", [job.job_id], [job.attempt]))
"""


class _Killer:
    """Kills the worker before or after the server gets one of its requests."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.job = ""
        self.before = self.after = self.requests = self.answers = 0
        self._lock = threading.Lock()

    def judge(self, _method: str, path: str, _count: int) -> int | None:
        # Two parts are sent at once: one of them may arrive when the worker is dead already.
        if self.job not in path:
            return None
        with self._lock:
            self.requests += 1
            return 500 if self._kills(self.requests == self.before) else None

    def answered(self, path: str) -> None:
        if self.job in path:
            with self._lock:
                self.answers += 1
                self._kills(self.answers == self.after)

    def _kills(self, is_due: bool) -> bool:
        if self.process is None or not is_due:
            return False
        self.process.kill()
        self.process.wait()
        return True

    def run(
        self,
        dsn: str,
        store: Store,
        job: UUID,
        *,
        before: int = 0,
        after: int = 0,
        step: int = 0,
    ) -> bool:
        """Run a worker for a job; return whether it was killed."""
        self.job, self.before, self.after = str(job), before, after
        self.requests = self.answers = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, dsn, pickle.dumps(store).hex(), str(step)],
            stderr=subprocess.PIPE,
            text=True,
        )
        _, errors = self.process.communicate()
        code, self.process = self.process.returncode, None
        assert code in {0, -9}, errors
        return code == -9


def test_a_kill_during_an_upload_to_a_bucket_leaves_nothing_behind(
    scene: Scene, swift: S3Server
) -> None:
    killer = _Killer()
    scene.register()
    Calls(scene.superuser).register("work")
    with between(swift, killer.judge, after=killer.answered) as store:
        kills = 0
        completed = 0
        for place in ("before", "after", "step"):
            number = 1
            while _attempt(scene, killer, store, **{place: number}):
                number += 1
            kills += number - 1
            completed += 1
        # Two requests for the start and the end of the large file, its two parts, the small file.
        assert kills >= 2 * 5 + 10
        storage.run_duty(scene.superuser)
        storage.make_removals_due(scene.superuser)
        sweep(scene.database.dsn, store)
        known = {path for (path,) in scene.rows("select storage_path from trunkline.artifacts")}
        assert len(known) >= 2 * completed
        assert set(files_of(store)) == known
        assert scene.value("select count(*) from trunkline.file_removals") == 0


def _attempt(scene: Scene, killer: _Killer, store: ObjectStore, **place: int) -> bool:
    """Run a job in a worker that is killed at a place; return whether it got there."""
    job: UUID = Calls(scene.superuser).enqueue("work").job_id
    killed = killer.run(scene.database.dsn, store, job, **place)
    artifacts = scene.rows("select * from trunkline.artifacts where job_id = %s", job)
    state = scene.state(job)
    # The last kill is between the commit of the completion and its answer.
    assert len(artifacts) == (2 if state == "completed" else 0)
    assert killed or state == "completed"
    for artifact in artifacts:
        content = b"".join(store.read(artifact.storage_path))
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            artifact.bytes,
            artifact.sha256,
        )
    if state == "running":
        attempt = scene.value("select attempt from trunkline.jobs where job_id = %s", job)
        scene.call(
            work.fail("w", [job], [attempt], errors=[None], retryable=[False], delays=[None])
        )
    return killed
