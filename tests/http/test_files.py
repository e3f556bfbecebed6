"""Links to artifacts, their content and archives, from a store in a folder."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.http.site import Api, Site
from trunkline.artifacts import LocalStore

CONTENT = b"a song of 300 kB" * 20_000


@pytest.fixture
def stored(site: Site, tmp_path: Path) -> tuple[LocalStore, str, str]:
    """A completed job with one file in a store."""
    store = LocalStore(tmp_path / "store")
    with site.database.superuser() as worker:

        def row(query: str, *arguments: object) -> tuple[str, ...]:
            found = worker.execute(query.encode(), arguments).fetchone()
            assert found is not None
            return found

        worker.execute("select trunkline.register_worker('f', p_pulse_interval => '1 hour')")
        row("select trunkline.enqueue('report', p_queue => 'files', p_tenant => 'a')")
        (job,) = row("select job_id::text from trunkline.claim('f', array['files'])")
        artifact, path = row(
            "select artifact_id::text, path from trunkline.begin_artifact("
            "'f', %s, 1, 'song.txt', p_content_type => 'text/plain')",
            job,
        )
        store.put(path, iter([CONTENT]), content_type="text/plain", filename="song.txt")
        digest = hashlib.sha256(CONTENT).hexdigest()
        size = str(len(CONTENT))
        row(
            "select trunkline.stage_artifact('f', %s, 1, %s, %s::bigint, %s)",
            job,
            path,
            size,
            digest,
        )
        row("select trunkline.complete('f', array[%s::uuid], '{1}')", job)
    return store, job, artifact


def test_a_link_works_without_signing_in_and_not_when_it_was_changed(
    site: Site, stored: tuple[LocalStore, str, str]
) -> None:
    store, job, artifact = stored
    api = Api(site, store=store)
    try:
        bearer = api.tenant("a")
        link = api.ok("POST", f"/v1/artifacts/{artifact}/link", bearer=bearer, json={})["url"]
        parts = urlsplit(link)
        path = f"{parts.path}?{parts.query}"
        response = api.send("GET", path)
        assert (response.status_code, response.content) == (200, CONTENT)
        assert response.headers["x-content-type-options"] == "nosniff"
        part = api.send("GET", path, headers={"Range": "bytes=5-9"})
        assert (part.status_code, part.content) == (206, CONTENT[5:10])
        assert api.send("GET", path[:-1]).status_code == 403
        assert api.send("GET", parts.path).status_code == 403
        assert api.send("GET", "/files/../../etc/passwd").status_code in {403, 404}
        redirect = api.send("GET", f"/v1/artifacts/{artifact}/content", bearer=bearer)
        assert redirect.status_code == 307
        archive = api.send("GET", f"/v1/jobs/{job}/archive", bearer=bearer)
        with zipfile.ZipFile(io.BytesIO(archive.content)) as opened:
            assert opened.read("song.txt") == CONTENT
        api.refused(404, "GET", f"/v1/jobs/{job}/archive", bearer=api.tenant("b"))
        assert api.ok("DELETE", f"/v1/artifacts/{artifact}", bearer=bearer) == {"deleted": True}
        api.refused(410, "POST", f"/v1/artifacts/{artifact}/link", bearer=bearer, json={})
    finally:
        api.close()
