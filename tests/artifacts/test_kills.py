"""A worker is killed before each step of upload, publication and completion."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from tests.artifacts.sweeping import age_everything, files_of, sweep
from tests.support.calls import Calls
from tests.support.internals import storage
from tests.worker.scene import Scene
from trunkline.artifacts import LocalStore
from trunkline.db.calls import work

# Counts every call of the engine and every change of the file system, and dies at one of them.
_WORKER = """
import os, signal, sys
from trunkline.artifacts import LocalStore, SyncStore, SyncUploads
from trunkline.db.calls import work
from trunkline.db.connect import connect
from trunkline.db.runner import run

dsn, folder, die_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
step = 0

def passing():
    global step
    step += 1
    if step == die_at:
        os.kill(os.getpid(), signal.SIGKILL)

for name in ("open", "mkdir", "write", "fsync", "rename", "close"):
    def counted(*arguments, original=getattr(os, name), **named):
        passing()
        return original(*arguments, **named)
    setattr(os, name, counted)
# LocalStore asks which functions accept the descriptor of a folder.
os.supports_dir_fd = os.supports_dir_fd | {os.open}

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
    uploads = SyncUploads(backend, job, SyncStore(LocalStore(folder)))
    step = 0
    uploads.add("page.txt", (b"x" * 2_000_000 for _ in range(3)))
    uploads.add("small.txt", b"content")
    backend.run(work.complete("w", [job.job_id], [job.attempt]))
print(step)
"""


def test_a_kill_leaves_neither_an_orphan_nor_a_visible_partial_file(
    scene: Scene, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path / "files")
    kills = 0
    completed = 0
    scene.register()
    while True:
        job = _enqueued(scene)
        killed = _run(scene.database.dsn, store.folder, kills + 1)
        artifacts = scene.rows("select * from trunkline.artifacts where job_id = %s", job)
        state = scene.state(job)
        assert len(artifacts) == (2 if state == "completed" else 0)
        completed += state == "completed"
        for artifact in artifacts:
            content = b"".join(store.read(artifact.storage_path))
            assert len(content) == artifact.bytes
        if state == "running":
            attempt = scene.value("select attempt from trunkline.jobs where job_id = %s", job)
            scene.call(
                work.fail("w", [job], [attempt], errors=[None], retryable=[False], delays=[None])
            )
        if not killed:
            break
        kills += 1
    assert kills > 40
    assert completed == 2
    age_everything(scene.superuser, store)
    sweep(scene.database.dsn, store)
    known = {path for (path,) in scene.rows("select storage_path from trunkline.artifacts")}
    assert len(known) == 4
    assert set(files_of(store)) == known
    assert list((store.folder / ".trunkline" / "uploads").iterdir()) == []
    assert scene.value("select count(*) from trunkline.file_removals") == 0


def test_ta_52_files_without_a_row_and_rows_without_a_file_are_found(
    scene: Scene, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path / "files")
    scene.register()
    job = _enqueued(scene)
    assert not _run(scene.database.dsn, store.folder, 0)
    first, second = scene.rows(
        "select * from trunkline.artifacts where job_id = %s order by artifact_id", job
    )
    store.put("shared/stray/file.bin", [b"nobody knows me"])
    store.put("shared/young/file.bin", [b"somebody may be about to"])
    store.delete([first.storage_path])
    age_everything(scene.superuser, store)
    now = datetime.now(UTC).timestamp()
    os.utime(store.folder / "shared/young/file.bin", (now, now))
    sweeper = sweep(scene.database.dsn, store)
    assert (sweeper.orphans, sweeper.missing) == (1, 1)
    assert set(files_of(store)) == {second.storage_path, "shared/young/file.bin"}
    missing = scene.rows("select artifact_id from trunkline.artifacts where missing_at is not null")
    assert [row.artifact_id for row in missing] == [first.artifact_id]
    health = scene.rows("select ok, detail from trunkline.health() where \"check\" = 'artifacts'")
    assert health[0].ok is False
    assert health[0].detail["missing"] == 1
    events = scene.rows("select kind from trunkline.events where job_id = %s", job)
    assert "artifact_missing" in {event.kind for event in events}
    # The file is back: from a backup, or the file system was not mounted.
    store.put(first.storage_path, [b"x" * first.bytes])
    storage.make_sweep_due(scene.superuser)
    sweep(scene.database.dsn, store)
    assert scene.value("select count(*) from trunkline.artifacts where missing_at is not null") == 0


def test_files_of_another_database_are_left_alone(scene: Scene, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "files")
    store.put("shared/theirs/file.bin", [b"theirs"])
    store.put(
        "trunkline-store.txt", [b"of another database\n0199d3f0-4f2a-7cc1-9d38-d6c7f0a4be11\n"]
    )
    age_everything(scene.superuser, store)
    sweep(scene.database.dsn, store)
    assert set(files_of(store)) == {"shared/theirs/file.bin"}


def test_a_sweep_continues_where_the_last_turn_stopped(scene: Scene, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "files")
    for number in range(450):
        store.put(f"shared/a/{number:03}.bin", [b"x"])
    age_everything(scene.superuser, store)
    sweeper = sweep(scene.database.dsn, store, steps=1)
    assert sweeper.orphans == 200
    assert storage.cursor_of(scene.superuser) == "shared/a/199.bin"
    assert sweep(scene.database.dsn, store).orphans == 250
    assert files_of(store) == []


def _enqueued(scene: Scene) -> UUID:
    calls = Calls(scene.superuser)
    if not scene.value("select exists (select from trunkline.tasks where task = 'work')"):
        calls.register("work")
    job: UUID = calls.enqueue("work").job_id
    return job


def _run(dsn: str, folder: Path, die_at: int) -> bool:
    """Run the worker; return whether it was killed."""
    ended = subprocess.run(
        [sys.executable, "-c", _WORKER, dsn, str(folder), str(die_at)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in {0, -9}, ended.stderr
    return ended.returncode == -9
