"""Uploads of workers in other languages: SQL, and a plain HTTP PUT to a signed link."""

from __future__ import annotations

import hashlib
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx2
import psycopg
import pytest

from tests.artifacts.conftest import KINDS, open_bucket
from tests.artifacts.serving import serving
from tests.operate.conftest import dsn_as
from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline import Trunkline
from trunkline.artifacts import Capabilities, LocalStore, ObjectStore, Store
from trunkline.errors import (
    FileDamaged,
    FileHeadersUnsafe,
    InvalidArgument,
    SchemaForbidden,
    StaleAttempt,
    StoreError,
    UnknownArtifact,
)
from trunkline.model import Artifact, UploadLink

_PAGE = b"<!doctype html><script>alert(1)</script>"


class Foreign:
    """A worker in another language: a login of its own, SQL and HTTP."""

    def __init__(self, database: Database, store: Store, stack: ExitStack) -> None:
        self.store = store
        self.connection = database.connect("trunkline_worker")
        self.calls = Calls(database.superuser())
        self.calls.register("work")
        # The program that holds the credentials of the store, and acts for workers.
        signer = Trunkline(store=store)
        stack.enter_context(signer.connect_to(dsn_as(database, "worker")))
        self.signer = signer.sync.artifacts
        reader = Trunkline(store=store)
        stack.enter_context(reader.connect_to(dsn_as(database, "producer")))
        self.reader = reader.sync.artifacts

    def ask(self, text: str, *arguments: Any) -> tuple[Any, ...]:
        row = self.connection.execute(f"select * from trunkline.{text}".encode(), arguments)
        found = row.fetchone()
        assert found is not None
        return tuple(found)

    def claim(self, **options: Any) -> tuple[UUID, int]:
        self.calls.enqueue("work", **options)
        row = self.connection.execute(
            "select job_id, attempt from trunkline.claim(p_worker => 'w', p_limit => 1,"
            " p_tasks => array['work'])"
        ).fetchone()
        assert row is not None
        return row[0], row[1]

    def begin(
        self, job: tuple[UUID, int], name: str, content_type: str, size: int | None = None
    ) -> UUID:
        begun: UUID = self.ask(
            "begin_artifact('w', %s, %s, %s, p_content_type => %s, p_bytes => %s)",
            *(*job, name, content_type, size),
        )[0]
        return begun

    def link(self, job: tuple[UUID, int], artifact: UUID, **options: Any) -> UploadLink:
        return self.signer.upload_link(
            artifact, worker=options.pop("worker", "w"), job=job[0], attempt=job[1], **options
        )

    def stage(self, job: tuple[UUID, int], link: UploadLink, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        self.ask("stage_artifact('w', %s, %s, %s, %s, %s)", *job, link.path, len(content), digest)

    def complete(self, job: tuple[UUID, int]) -> None:
        self.connection.execute(
            "select * from trunkline.complete('w', array[%s]::uuid[], array[%s])", job
        )

    def uploaded(
        self, name: str, content_type: str, content: bytes, *, headers: bool = True
    ) -> tuple[Artifact, UploadLink]:
        job = self.claim()
        link = self.link(job, self.begin(job, name, content_type))
        assert put(link, content, link.headers if headers else {}) in {200, 201}
        self.stage(job, link, content)
        self.complete(job)
        (artifact,) = self.reader.list(job=job[0])
        return artifact, link


def put(link: UploadLink, content: bytes, headers: Mapping[str, str]) -> int:
    """Send the request as the standard library of any language would; return its status."""
    request = urllib.request.Request(  # noqa: S310 - a link of ours
        link.url, data=content, headers=dict(headers), method=link.method
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture(params=KINDS)
def foreign(
    request: pytest.FixtureRequest, database: Database, tmp_path: Path
) -> Iterator[Foreign]:
    """A foreign worker on each kind of store."""
    with ExitStack() as stack:
        store: Store
        if request.param == "local":
            store = stack.enter_context(serving(tmp_path / "files"))
        else:
            store = open_bucket(request.getfixturevalue(request.param))
        yield Foreign(database, store, stack)


@pytest.fixture
def local_foreign(database: Database, tmp_path: Path) -> Iterator[Foreign]:
    with ExitStack() as stack:
        store = stack.enter_context(serving(tmp_path / "files"))
        yield Foreign(database, store, stack)


@pytest.mark.parametrize(
    ("name", "content_type", "disposition"),
    [
        ("Käse 1.mp3", "audio/mpeg", "inline"),
        ("page.html", "text/html", "attachment"),
        ("drawing.svg", "image/svg+xml", "attachment"),
    ],
)
def test_another_language_uploads_with_a_plain_put(
    foreign: Foreign, name: str, content_type: str, disposition: str
) -> None:
    content = os.urandom(100_000)
    artifact, link = foreign.uploaded(name, content_type, content)
    assert (artifact.name, artifact.content_type, artifact.bytes) == (name, content_type, 100_000)
    assert link.path == artifact.storage_path
    assert foreign.reader.read(artifact) == content
    answer = httpx2.get(foreign.reader.link(artifact))
    assert answer.content == content
    assert answer.headers["Content-Type"] == content_type
    assert answer.headers["Content-Disposition"].startswith(f"{disposition};")
    assert httpx2.put(link.url + "0", content=b"x").status_code == 403


def test_a_page_uploaded_without_its_headers_is_never_shown_by_a_browser(foreign: Foreign) -> None:
    artifact, link = foreign.uploaded("page.html", "text/html", _PAGE, headers=False)
    assert foreign.reader.read(artifact) == _PAGE
    if isinstance(foreign.store, LocalStore):
        # The link for reading has type and name.
        answer = httpx2.get(foreign.reader.link(artifact))
        assert answer.headers["Content-Disposition"].startswith("attachment;")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        return
    with pytest.raises(FileHeadersUnsafe, match="without the header Content-Disposition"):
        foreign.reader.link(artifact)
    for headers in ({"Content-Type": "text/html"}, {"Content-Disposition": "inline"}):
        assert put(link, _PAGE, headers) == 200
        with pytest.raises(FileHeadersUnsafe):
            foreign.reader.link(artifact)
    assert put(link, _PAGE, link.headers) == 200
    answer = httpx2.get(foreign.reader.link(artifact))
    assert answer.headers["Content-Disposition"].startswith("attachment;")


def test_a_bucket_without_upload_links_signs_without_a_request(local_foreign: Foreign) -> None:
    options = {
        "endpoint": "http://127.0.0.1:1",
        "access_key_id": "a",
        "secret_access_key": "b",
        "region": "us-east-1",
    }
    # Nothing answers there.
    store = ObjectStore(
        "s3://bucket", capabilities=Capabilities(signed_uploads=False), options=options
    )
    assert store.sign("a/page.html", content_type="text/html").startswith("http")
    signer = Trunkline(store=store)
    with pytest.raises(StoreError, match="no uploads through links"):
        signer.sync.artifacts.upload_link(UUID(int=1), worker="w", job=UUID(int=2), attempt=1)


def test_ta_27_only_the_attempt_that_began_an_artifact_gets_its_link(
    local_foreign: Foreign,
) -> None:
    foreign = local_foreign
    job, other = foreign.claim(), foreign.claim()
    begun = foreign.begin(job, "a.txt", "text/plain")
    for stale in ((job[0], job[1] + 1), (UUID(int=1), 1)):
        with pytest.raises(StaleAttempt):
            foreign.link(stale, begun)
    with pytest.raises(StaleAttempt):
        foreign.link(job, begun, worker="other")
    with pytest.raises(UnknownArtifact):
        foreign.link(other, begun)
    with pytest.raises(InvalidArgument):
        foreign.link(job, begun, expires_in=3601)
    with pytest.raises(SchemaForbidden):
        foreign.reader.upload_link(begun, worker="w", job=job[0], attempt=job[1])
    link = foreign.link(job, begun)
    assert put(link, b"text", link.headers) == 201
    foreign.stage(job, link, b"text")
    with pytest.raises(UnknownArtifact):
        foreign.link(job, begun)
    later = foreign.begin(job, "b.txt", "text/plain")
    foreign.complete(job)
    with pytest.raises(StaleAttempt):
        foreign.link(job, later)


def test_ta_50_a_file_cannot_be_replaced_through_the_link_of_a_folder(
    local_foreign: Foreign,
) -> None:
    artifact, link = local_foreign.uploaded("a.txt", "text/plain", b"the content")
    # A client that did not get the answer sends it again.
    assert put(link, b"the content", link.headers) == 200
    assert put(link, b"something else", link.headers) == 409
    assert local_foreign.reader.read(artifact) == b"the content"


def test_a_file_replaced_in_a_bucket_is_noticed_by_its_hash(foreign: Foreign) -> None:
    artifact, link = foreign.uploaded("a.txt", "text/plain", b"the content")
    status = put(link, b"the fraud  ", link.headers)
    if isinstance(foreign.store, LocalStore):
        assert status == 409
        return
    assert status == 200
    with pytest.raises(FileDamaged):
        foreign.reader.read(artifact)
    with pytest.raises(FileDamaged):
        b"".join(foreign.reader.zip(job=artifact.job_id))


def test_an_upload_over_the_quota_is_refused(foreign: Foreign) -> None:
    foreign.calls.value("select trunkline.set_storage_quota('acme', 1000)")
    job = foreign.claim(tenant="acme")
    link = foreign.link(job, foreign.begin(job, "a.bin", "application/octet-stream", 10))
    status = put(link, b"x" * 1001, link.headers)
    if isinstance(foreign.store, LocalStore):
        assert status == 413
        assert [file.path for file in foreign.store.list()] == []
    else:
        # A bucket cannot tell; the engine refuses what it is told about.
        assert status == 200
    with pytest.raises(psycopg.Error) as refused:
        foreign.stage(job, link, b"x" * 1001)
    assert refused.value.sqlstate == "TL059"
    foreign.complete(job)
    assert foreign.reader.list(job=job[0]) == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 100\r\n\r\nfour", 400),
        (b"\r\n", 411),
        (b"Content-Length: -1\r\n\r\n", 411),
        (b"Content-Length: 4\r\nContent-Range: bytes 0-3/8\r\n\r\nfour", 400),
    ],
    ids=["cut", "no length", "bad length", "part"],
)
def test_a_cut_upload_leaves_nothing_visible(tmp_path: Path, head: bytes, status: int) -> None:
    with serving(tmp_path) as store:
        parts = urlsplit(store.sign("a/file.bin", method="PUT", expires_in=60))
        with socket.create_connection((parts.hostname, parts.port), 30) as client:
            target = f"{parts.path}?{parts.query}".encode()
            client.sendall(b"PUT " + target + b" HTTP/1.0\r\n" + head)
            client.shutdown(socket.SHUT_WR)
            answer = client.makefile("rb").readline()
        assert answer.split()[1] == str(status).encode()
        assert list(store.list()) == []
        uploads = tmp_path / ".trunkline" / "uploads"
        assert not uploads.exists() or list(uploads.iterdir()) == []


def test_a_link_for_reading_takes_no_upload_and_the_other_way_round(tmp_path: Path) -> None:
    with serving(tmp_path) as store:
        store.put("a/file.bin", [b"content"])
        reading = store.sign("a/file.bin")
        writing = store.sign("a/file.bin", method="PUT", max_bytes=7)
        assert httpx2.put(reading, content=b"content").status_code == 403
        assert httpx2.get(writing).status_code == 403
        assert httpx2.put(writing.replace("bytes=7", "bytes=70"), content=b"x").status_code == 403
        assert httpx2.put(writing, content=b"content").status_code == 200
        assert httpx2.put(writing, content=b"content!").status_code == 413
        store.secrets.rotate()
        store.secrets.rotate()
        assert httpx2.put(writing, content=b"content").status_code == 403


def test_a_full_folder_refuses_an_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.write

    def write(descriptor: int, data: Any) -> int:
        if len(data) == 7:
            raise OSError(28, "No space left on device")
        return original(descriptor, data)

    with serving(tmp_path) as store:
        link = store.sign("a/file.bin", method="PUT")
        monkeypatch.setattr(os, "write", write)
        assert httpx2.put(link, content=b"content").status_code == 507
        monkeypatch.undo()
        assert list(store.list()) == []
        assert httpx2.put(link, content=b"content").status_code == 201
