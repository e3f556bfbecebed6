"""The routes: paths, bodies and statuses of the source."""

import io
import os
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pypdf import PdfReader

from profiles.tests.exports.conftest import MIB, Exports
from profiles.tests.exports.server import Server, serving
from tests.support.waiting import DEADLINE
from trunkline.artifacts import LocalStore
from trunkline_profiles.exports import http
from trunkline_profiles.exports.http import BASE


@pytest.fixture
def site(exports: Exports, tmp_path: Path) -> Iterator[Any]:
    with serving(exports, LocalStore(tmp_path / "store")) as made:
        yield made


def test_ex_81_one_export_from_request_to_download(site: Server) -> None:
    """EX-11, EX-12, EX-37, EX-38, EX-58, EX-59, EX-61, EX-81, EX-93, EX-S01: over HTTP."""
    job = site.export("My CV")
    found = site.ok("GET", f"/job/{job}")
    assert (found["status"], found["progress"], found["resultUrl"]) == ("pending", 0, None)
    assert site.work() == 1
    found = site.ok("GET", f"/job/{job}")
    assert (found["status"], found["progress"], found["error"]) == ("completed", 100, None)
    pdf = site.client.get(found["resultUrl"])
    assert pdf.headers["content-type"] == "application/pdf"
    assert len(PdfReader(io.BytesIO(pdf.content)).pages) == 1
    (row,) = site.ok("GET", "/history")
    assert (row["fileName"], row["fileSize"], row["pageCount"]) == (
        *("My CV.pdf", len(pdf.content), 1),
    )
    redirect = site.send("GET", f"/download/{row['id']}")
    assert redirect.status_code == 302
    assert "expires=" in redirect.headers["location"]
    assert site.client.get(redirect.headers["location"]).content == pdf.content
    # Asking whether it is there is no download.
    assert site.send("HEAD", f"/download/{row['id']}").status_code == 302
    assert site.ok("GET", "/history")[0]["downloadCount"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "documentId"),
        ({"documentId": "x"}, "documentId"),
        ({"documentId": 7}, "documentId"),
        ([], "body"),
        ({"documentId": str(uuid4()), "x": 1}, "x"),
        ({"documentId": str(uuid4()), "options": {"pageSize": "A3"}}, "pageSize"),
        ({"documentId": str(uuid4()), "options": 7}, "options"),
        ({"documentId": str(uuid4()), "templateSlug": "none"}, "templateSlug"),
    ],
)
def test_ex_12_a_wrong_body_is_answered_400_with_its_fields(
    site: Server, body: Any, field: str
) -> None:
    """EX-11, EX-12."""
    problem = site.refused(400, "POST", "/pdf", json=body)
    assert list(problem["facts"]["fields"]) == [field]
    assert problem["code"] == "exports_invalid_request"


def test_ex_12_every_other_refusal_has_its_status(site: Server) -> None:
    """EX-12, EX-47, EX-70: 400, 401, 404, 429 and 507, without statements and paths."""
    exports = site.exports
    document = str(exports.document())
    refused = site.send("POST", "/pdf", content=b"{", headers={"Content-Type": "application/json"})
    assert refused.status_code == 400
    for method, path in (("POST", "/pdf"), ("GET", "/history"), ("GET", f"/job/{uuid4()}/stream")):
        answer = site.client.request(method, BASE + path, json={} if method == "POST" else None)
        assert answer.status_code == 401
    site.refused(404, "POST", "/pdf", json={"documentId": str(uuid4())})
    foreign = str(exports.document(user=exports.person()))
    site.refused(404, "POST", "/pdf", json={"documentId": foreign})
    exports.set(storage_bytes=1)
    problem = site.refused(507, "POST", "/pdf", json={"documentId": document})
    assert {"usedMB", "limitMB"} <= problem["facts"].keys()
    exports.set(storage_bytes=100 * MIB, jobs_per_user=1)
    site.ok("POST", "/pdf", 202, json={"documentId": document})
    problem = site.refused(429, "POST", "/pdf", json={"documentId": str(exports.document())})
    assert (problem["code"], problem["retryable"]) == ("exports_queue_full", True)
    assert "exports." not in problem["detail"]


def test_ex_39_cancel_over_http(site: Server) -> None:
    """EX-39, EX-93: cancelled, cancelling, 404, 409."""
    waiting, running = site.export("A"), site.export("B")
    assert site.ok("DELETE", f"/job/{waiting}")["status"] == "cancelled"
    site.refused(409, "DELETE", f"/job/{waiting}")
    site.exports.claim()
    assert site.ok("DELETE", f"/job/{running}")["status"] == "cancelling"
    stranger = site.exports.person()
    for path, user in ((f"/job/{uuid4()}", None), ("/job/x", None), (f"/job/{running}", stranger)):
        site.refused(404, "DELETE", path, user=user)
        site.refused(404, "GET", path, user=user)


def test_ex_40_polling_shows_every_step(site: Server) -> None:
    """EX-23, EX-40: the fallback of a client without streams."""
    job = site.export()
    site.exports.claim()
    seen = []
    for percent in (25, 50, 75, 90):
        site.exports.progress(job, percent)
        seen.append(site.ok("GET", f"/job/{job}")["progress"])
    assert seen == [25, 50, 75, 90]


def test_ex_53_a_batch_from_request_to_zip(site: Server) -> None:
    """EX-46, EX-52, EX-53, EX-55, EX-85, EX-S06: 202, 206, 200 with three safe names."""
    titles = ("CV", "CV", "a/../b")
    documents = [str(site.exports.document(title)) for title in titles]
    made = site.ok("POST", "/batch", 202, json={"documentIds": documents, "options": {}})
    batch = made["batchId"]
    assert [job["documentId"] for job in made["jobs"]] == documents
    site.refused(404, "GET", f"/batch/{batch}/download")
    assert site.work_some(2) == 2
    response = site.send("GET", f"/batch/{batch}/download")
    assert response.status_code == 206
    assert response.json()["data"] == {
        "completedCount": 2,
        "totalCount": 3,
        "completedJobs": [job["jobId"] for job in made["jobs"][:2]],
    }
    part = site.send("GET", f"/batch/{batch}/download", params={"partial": "true"})
    assert (part.status_code, len(zipfile.ZipFile(io.BytesIO(part.content)).namelist())) == (200, 2)
    site.work()
    assert site.ok("GET", f"/batch/{batch}")["progress"] == 100
    response = site.send("GET", f"/batch/{batch}/download")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["content-disposition"] == f'attachment; filename="resumes-{batch}.zip"'
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        names = archive.namelist()
        assert names[:2] == ["CV.pdf", "CV (2).pdf"]
        assert len(names) == 3
        assert not any("/" in name or ".." in name for name in names)
        assert all(name.endswith(".pdf") for name in names)
        assert all(archive.read(name).startswith(b"%PDF") for name in names)
    stranger = site.exports.person()
    for path in (f"/batch/{batch}", f"/batch/{batch}/download", f"/batch/{batch}/stream"):
        site.refused(404, "GET", path, user=stranger)
    site.exports.later("8 days")
    site.refused(410, "GET", f"/batch/{batch}/download")


def test_ex_55_a_missing_file_is_listed_and_a_download_of_it_is_404(site: Server) -> None:
    """EX-55, EX-56, EX-58: nothing is skipped in silence; each file has its link too."""
    documents = [str(site.exports.document(title)) for title in "AB"]
    batch = site.ok("POST", "/batch", 202, json={"documentIds": documents})["batchId"]
    site.work()
    jobs = site.ok("GET", f"/batch/{batch}")["jobs"]
    links = [site.ok("GET", f"/job/{job['id']}")["resultUrl"] for job in jobs]
    assert all(site.client.get(link).status_code == 200 for link in links)
    lost = site.exports.history()[0]
    site.store.delete([lost.file_path])
    content = site.send("GET", f"/batch/{batch}/download").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert sorted(archive.namelist()) == ["B.pdf", "MISSING.txt"]
    site.refused(404, "GET", f"/download/{lost.id}")
    assert site.exports.history()[0].download_count == 0


def test_ex_47_a_wrong_batch_is_answered_400(site: Server) -> None:
    wrong: tuple[Any, ...] = ([], {}, "x", None, [1], ["x"], [str(uuid4())] * 11)
    for documents in wrong:
        problem = site.refused(400, "POST", "/batch", json={"documentIds": documents})
        assert list(problem["facts"]["fields"]) == ["documentIds"]
    own = str(site.exports.document())
    site.refused(404, "POST", "/batch", json={"documentIds": [own, str(uuid4())]})
    body = {"documentIds": [own], "options": {"quality": "x"}}
    site.refused(400, "POST", "/batch", json=body)
    assert site.exports.jobs() == []


def test_ex_89_deleting_and_expiry_over_http(site: Server) -> None:
    """EX-58, EX-60, EX-89, EX-93, EX-S08: 200 again; 410 after; 404 for strangers."""
    site.export()
    site.work()
    history = site.ok("GET", "/history")[0]["id"]
    stranger = site.exports.person()
    for method, path in (("DELETE", "/history"), ("GET", "/download")):
        site.refused(404, method, f"{path}/{history}", user=stranger)
        site.refused(404, method, f"{path}/x")
    for _ in range(2):
        assert site.ok("DELETE", f"/history/{history}")["message"] == "Export deleted"
    site.refused(410, "GET", f"/download/{history}")
    assert site.ok("GET", "/history") == []


def test_ex_66_the_cleanup_over_http(site: Server) -> None:
    """EX-66, EX-84, EX-93: 403 for users; the number for administrators."""
    site.export()
    site.work()
    site.exports.later("8 days")
    site.refused(403, "POST", "/cleanup")
    boss = site.exports.person(administrator=True)
    assert site.ok("POST", "/cleanup", user=boss) == {"deleted": 1}
    assert site.ok("POST", "/cleanup", user=boss) == {"deleted": 0}


def test_ex_41_a_stream_shows_every_change(site: Server) -> None:
    """EX-41, EX-42, EX-43, EX-44, EX-S01: at once, then changes, then the end."""
    job = site.export()
    with site.stream(f"/job/{job}/stream") as (response, events):
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache"
        first = next(events)
        assert (first.name, first["status"], first["jobId"]) == ("progress", "pending", str(job))
        site.exports.claim()
        for percent in (25, 50, 75, 90):
            site.exports.progress(job, percent)
            assert next(event for event in events if event["progress"] == percent)
        assert site.complete(job)
        last = next(event for event in events if event.name != "progress")
        assert (last.name, last["error"]) == ("completed", None)
        assert site.client.get(last["resultUrl"]).status_code == 200
        assert list(events) == []
    assert last.id is not None
    with site.stream(f"/job/{job}/stream") as (_, events):
        assert [event.name for event in events] == ["completed"]
    with site.stream(f"/job/{job}/stream", **{"Last-Event-ID": last.id}) as (response, _):
        assert response.status_code == 204


def test_ex_42_a_stream_ends_with_a_cancellation_or_a_failure(site: Server) -> None:
    """EX-42, EX-44, EX-92."""
    for end, name in (("cancel", "cancelled"), ("fail", "failed")):
        job = site.export(name)
        with site.stream(f"/job/{job}/stream") as (_, events):
            next(events)
            if end == "cancel":
                site.ok("DELETE", f"/job/{job}")
            else:
                site.exports.claim()
                site.exports.fail(job, "x", permanent=True)
            last = list(events)[-1]
        assert last.name == name
        assert last["error"]


def test_ex_45_polling_ends_with_the_client(site: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """EX-45, EX-S11: the reader of the state ends; a reconnect gets the current state first."""
    ended = threading.Event()
    events_of = http._events  # noqa: SLF001 - to see it end

    async def watched(*arguments: Any) -> AsyncIterator[bytes]:
        try:
            async for part in events_of(*arguments):
                yield part
        finally:
            ended.set()

    monkeypatch.setattr(http, "_events", watched)
    job = site.export()
    with site.stream(f"/job/{job}/stream") as (_, events):
        assert next(events)["status"] == "pending"
        assert not ended.is_set()
    assert ended.wait(DEADLINE)
    site.exports.claim()
    site.exports.progress(job, 50)
    with site.stream(f"/job/{job}/stream") as (_, events):
        assert next(events)["progress"] == 50


def test_ex_91_a_batch_is_followed_live(site: Server) -> None:
    """EX-91: percent, the state of each job, and one final event."""
    documents = [str(site.exports.document(title)) for title in "AB"]
    made = site.ok("POST", "/batch", 202, json={"documentIds": documents})
    with site.stream(f"/batch/{made['batchId']}/stream") as (_, events):
        first = next(events)
        assert (first.name, first["progress"], len(first["jobs"])) == ("progress", 0, 2)
        site.work()
        found = list(events)
    assert [event.name for event in found].count("completed") == 1
    last = found[-1]
    assert (last.name, last["batchId"], last["progress"]) == ("completed", made["batchId"], 100)
    assert (
        site.client.get(
            last["resultUrl"], headers={"Authorization": f"Bearer {site.key()}"}
        ).status_code
        == 200
    )
    path = f"/batch/{made['batchId']}/stream"
    with site.stream(path, **{"Last-Event-ID": last.id}) as (response, _):
        assert response.status_code == 204


def test_ex_68_two_users_over_http(site: Server) -> None:
    """EX-68, EX-69: neither sees what the other has."""
    job = site.export()
    site.work()
    stranger = site.exports.person()
    assert site.ok("GET", "/history", user=stranger) == []
    assert site.ok("GET", "/documents", user=stranger) == []
    assert len(site.ok("GET", "/documents")) == 1
    for path in (f"/job/{job}", f"/job/{job}/stream"):
        site.refused(404, "GET", path, user=stranger)
    assert UUID(site.ok("GET", f"/job/{job}")["id"]) == job


def test_the_page_needs_no_key_and_has_no_data(site: Server) -> None:
    for name, kind in (("", "text/html"), ("page.js", "text/javascript"), ("page.css", "text/css")):
        answer = site.client.get(f"/exports/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert "default-src 'self'" in answer.headers["content-security-policy"]


class _Counting(LocalStore):
    """A store that counts what was read of it."""

    passed = 0

    def read(self, path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        for chunk in super().read(path, start, stop):
            self.passed += len(chunk)
            yield chunk


def test_ex_54_a_zip_is_streamed(exports: Exports, tmp_path: Path) -> None:
    """EX-54: the first bytes leave before the second file is read to its end."""
    store = _Counting(tmp_path / "store")
    size = 8 * MIB
    with serving(exports, store) as site:
        documents = [str(exports.document(title)) for title in "ABC"]
        batch = site.ok("POST", "/batch", 202, json={"documentIds": documents})["batchId"]
        site.exports.unlimited()
        while (row := exports.claim()) is not None:
            assert site.complete(row.id, os.urandom(size))
        with site.client.stream(
            "GET",
            f"{BASE}/batch/{batch}/download",
            headers={"Authorization": f"Bearer {site.key()}"},
        ) as response:
            chunks = response.iter_bytes()
            next(chunks)
            assert store.passed < 2 * size
            assert sum(map(len, chunks)) > 2 * size
    assert list(tmp_path.glob("*.zip")) == []
