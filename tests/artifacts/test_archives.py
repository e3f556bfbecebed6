"""ZIP archives of jobs and workflows, and what they say about files that are gone."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.artifacts.conftest import open_bucket
from tests.artifacts.sweeping import age_everything, sweep
from tests.operate.conftest import dsn_as
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import storage
from tests.support.proxy import FaultProxy
from tests.support.s3_servers import S3Server
from tests.support.waiting import until
from trunkline import Trunkline
from trunkline.artifacts import LocalStore, Store, SyncArchive, SyncArtifacts
from trunkline.model import ArchiveContents
from trunkline.operate import SyncOperator

_CONTENT = b"x" * 100
_HASH = "09ecb6ebc8bcefc733f6f2ec44f791abeed6a99edf0cc31519637898aebd52d8"


class Shelf:
    """Jobs with files, and the artifacts that a client sees."""

    def __init__(self, database: Database, store: Store, reader: SyncArtifacts) -> None:
        self.database = database
        self.store = store
        self.reader = reader
        self.superuser = database.superuser()
        self.calls = Calls(self.superuser)
        self.calls.register("work")

    def workflow(self, jobs: int, **more: Any) -> UUID:
        steps = [{"name": f"step{number}", "task": "work"} for number in range(jobs)]
        found: UUID = self.calls.value(
            "select workflow_id from trunkline.start_workflow(%s)",
            Jsonb({"name": "report", "steps": steps, **more}),
        )
        return found

    def run(self, *names: str) -> UUID:
        """Run the next job, which publishes these files."""
        (attempt,) = self.calls.claim("w", 1, tasks=["work"]).attempts
        rows = self.superuser.execute(
            "select (trunkline.begin_artifact('w', %s, %s, name)).path"
            " from unnest(%s::text[]) as name",
            (attempt.job, attempt.number, list(names)),
        ).fetchall()
        for (path,) in rows:
            self.store.put(path, [_CONTENT])
        self.superuser.execute(
            "select trunkline.stage_artifact('w', %s, %s, path, %s, %s)"
            " from unnest(%s::text[]) as path",
            (attempt.job, attempt.number, len(_CONTENT), _HASH, [path for (path,) in rows]),
        )
        self.calls.batch("complete", "w", [attempt])
        job: UUID = attempt.job
        return job

    def expire(self, kind: str) -> None:
        """Shorten the retention of a kind, and let it pass."""
        self.calls.value("select trunkline.set_artifact_retention(%s, '1 hour')", kind)
        self.database.move_time("2 hours")
        storage.expire(self.superuser, kind)
        storage.run_duty(self.superuser)


@pytest.fixture
def shelf(database: Database, local: LocalStore) -> Iterator[Shelf]:
    app = Trunkline(store=local)
    with app.connect_to(dsn_as(database, "producer")):
        yield Shelf(database, local, app.sync.artifacts)


def _unpacked(archive: SyncArchive) -> dict[str, bytes]:
    packed = zipfile.ZipFile(io.BytesIO(b"".join(archive)))
    assert packed.testzip() is None
    return {name: packed.read(name) for name in packed.namelist()}


def test_ex_53_an_archive_has_all_files_of_a_workflow_on_several_pages(shelf: Shelf) -> None:
    workflow = shelf.workflow(2)
    shelf.run(*(f"{number}.txt" for number in range(1001)))
    part = shelf.reader.zip(workflow=workflow)
    assert part.contents == ArchiveContents(1001, 0, 0, 0, jobs=2, completed_jobs=1)
    assert part.contents.status == 206
    part.close()
    shelf.run("0.txt", "last.txt")
    shelf.calls.enqueue("work")
    shelf.run("of another job.txt")
    archive = shelf.reader.zip(workflow=workflow)
    assert archive.contents == ArchiveContents(1003, 0, 0, 0, jobs=2, completed_jobs=2)
    assert archive.contents.status == 200
    files = _unpacked(archive)
    assert {*files} == {*(f"{number}.txt" for number in range(1001)), "0 (2).txt", "last.txt"}
    assert {*files.values()} == {_CONTENT}


def test_ex_55_files_that_are_gone_are_counted_and_listed(shelf: Shelf) -> None:
    workflow = shelf.workflow(1)
    job = shelf.run("kept.txt", "old.mp3", "unwanted.txt", "lost.txt", "result.json")
    artifacts = {found.name: found for found in shelf.reader.list(job=job)}
    shelf.expire("mp3")
    shelf.reader.delete(artifacts["unwanted.txt"], reason="a secret reason")
    shelf.store.delete([artifacts["lost.txt"].storage_path])
    assert isinstance(shelf.store, LocalStore)
    age_everything(shelf.superuser, shelf.store)
    sweep(shelf.database.dsn, shelf.store)
    for archive in (shelf.reader.zip(job=job), shelf.reader.zip(workflow=workflow)):
        counts = archive.contents
        assert (counts.included, counts.missing, counts.expired, counts.deleted) == (2, 1, 1, 1)
        assert counts.status == 206
        files = _unpacked(archive)
        assert {*files} == {"kept.txt", "result.json", "MISSING.txt"}
        first, _, *lines = files["MISSING.txt"].decode().splitlines()
        assert first == "3 of 5 files are missing from this archive."
        reasons = dict(line.split(": ", 1) for line in lines)
        assert reasons["old.mp3"].startswith("expired at 20")
        assert reasons["unwanted.txt"].startswith("deleted at 20")
        assert reasons["lost.txt"].startswith("The store has no file")
        assert "secret" not in str(reasons)


def test_a_file_lost_since_the_last_sweep_is_listed_too(shelf: Shelf) -> None:
    shelf.calls.enqueue("work")
    job = shelf.run("kept.txt", "lost.txt")
    archive = shelf.reader.zip(job=job)
    lost = next(found for found in shelf.reader.list(job=job) if found.name == "lost.txt")
    shelf.store.delete([lost.storage_path])
    assert archive.contents.included == 2
    assert "lost.txt: The store has no file" in _unpacked(archive)["MISSING.txt"].decode()


def test_ex_53_nothing_is_404_and_nothing_any_more_is_410(shelf: Shelf) -> None:
    workflow = shelf.workflow(1)
    assert shelf.reader.zip(job=uuid4()).contents.status == 404
    for unknown in (uuid4(), workflow):
        assert shelf.reader.zip(workflow=unknown).contents.status == 404
    shelf.run("old.mp3")
    assert shelf.reader.zip(workflow=workflow).contents.status == 200
    shelf.expire("mp3")
    archive = shelf.reader.zip(workflow=workflow)
    assert archive.contents == ArchiveContents(0, 0, 1, 0, jobs=1, completed_jobs=1)
    assert archive.contents.status == 410
    assert {*_unpacked(archive)} == {"MISSING.txt"}
    # Tombstones go after 30 days.
    storage.age_tombstones(shelf.superuser, "31 days")
    storage.run_duty(shelf.superuser)
    assert shelf.reader.zip(workflow=workflow).contents.status == 404


@pytest.mark.parametrize(
    ("contents", "status"),
    [
        (ArchiveContents(2, 0, 0, 0), 200),
        (ArchiveContents(2, 0, 0, 0, 3, 3), 200),
        (ArchiveContents(2, 0, 0, 0, 3, 2), 206),
        (ArchiveContents(2, 1, 0, 0, 3, 3), 206),
        (ArchiveContents(2, 0, 1, 0), 206),
        (ArchiveContents(2, 0, 0, 1), 206),
        (ArchiveContents(0, 0, 0, 0, 3, 0), 404),
        (ArchiveContents(0, 1, 0, 0), 404),
        (ArchiveContents(0, 1, 1, 0), 410),
        (ArchiveContents(0, 0, 0, 1), 410),
    ],
)
def test_ex_53_the_contents_say_which_status_a_server_answers(
    contents: ArchiveContents, status: int
) -> None:
    assert contents.status == status


def test_a_deleted_file_of_which_there_is_a_newer_one_is_not_missing(shelf: Shelf) -> None:
    shelf.calls.enqueue("work")
    job = shelf.run("page.txt", "other.txt")
    page = next(found for found in shelf.reader.list(job=job) if found.name == "page.txt")
    tombstone = page._replace(id=UUID(int=1), deleted_at=page.published_at, delete_reason="old")
    archive = shelf.reader.zip([tombstone, page])
    assert archive.contents == ArchiveContents(1, 0, 0, 0)
    assert {*_unpacked(archive)} == {"page.txt"}


def test_ex_53_a_tenant_gets_nothing_of_another_workflow(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_STORE", shelf.store.address)
    workflow = shelf.workflow(1, tenant="acme")
    shelf.run("secret.txt")
    for tenant, status in (("acme", 200), ("other", 404)):
        with SyncOperator(dsn_as(shelf.database, "producer"), tenant=tenant) as operator:
            archive = operator.artifacts.zip(workflow=workflow)
            assert archive.contents.status == status
            assert len(_unpacked(archive)) == (status == 200)


def test_a_client_that_leaves_an_archive_ends_the_reads(shelf: Shelf, tmp_path: Path) -> None:
    shelf.calls.enqueue("work")
    job = shelf.run("a.txt", "b.txt")
    for artifact in shelf.reader.list(job=job):
        shelf.store.put(artifact.storage_path, [os.urandom(1 << 20)] * 3)
    descriptors = Path("/proc/self/fd")

    def open_files() -> list[str]:
        return [
            str(link.readlink())
            for link in descriptors.iterdir()
            if link.is_symlink() and str(tmp_path) in os.path.realpath(link)
        ]

    archive = shelf.reader.zip(job=job)
    assert next(archive)
    assert len(open_files()) == 1
    archive.close()
    assert open_files() == []


_LARGE = 48 << 20
# Of 48 MB: what the sockets between the bucket and the reader may hold.
_PASSED = 24 << 20


@pytest.mark.parametrize("kind", ["swift", "rclone"])
@pytest.mark.parametrize("reader", ["blocking", "asynchronous"])
async def test_a_client_that_leaves_an_archive_ends_the_download_from_a_bucket(
    database: Database, request: pytest.FixtureRequest, kind: str, reader: str
) -> None:
    server: S3Server = request.getfixturevalue(kind)
    address = urlsplit(server.endpoint)
    assert address.hostname is not None
    assert address.port is not None
    with FaultProxy((address.hostname, address.port)) as proxy:
        bucket = open_bucket(replace(server, endpoint=f"http://127.0.0.1:{proxy.port}"))
        app = Trunkline(store=bucket)
        with app.connect_to(dsn_as(database, "producer")):
            shelf = Shelf(database, bucket, app.sync.artifacts)
            shelf.calls.enqueue("work")
            job = shelf.run("a.mp3")
            (artifact,) = shelf.reader.list(job=job)
            bucket.put(artifact.storage_path, [os.urandom(1 << 20)] * (_LARGE >> 20))
            before = proxy.to_clients
            if reader == "blocking":
                archive = shelf.reader.zip(job=job)
                assert len(next(archive)) > 0
                archive.close()
            else:
                stream = await app.artifacts.zip(job=job)
                assert len(await anext(stream)) > 0
                await stream.aclose()
            await app.close()

        # A connection in the middle of an answer cannot be used again.
        until(
            lambda: all(link.to_client < 1 << 20 for link in proxy.links), "the download has ended"
        )
        assert 0 < proxy.to_clients - before < _PASSED
