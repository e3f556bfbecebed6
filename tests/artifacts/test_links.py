"""Signed links to a local store, and how a server answers them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest

from tests.artifacts.serving import serving
from trunkline.artifacts import Answer, LocalStore, answer_link
from trunkline.errors import InvalidVariable, StoreError

_CONTENT = bytes(range(256)) * 10


@pytest.fixture
def stored(local: LocalStore) -> LocalStore:
    local.put("t/song.mp3", [_CONTENT])
    return local


def _ask(store: LocalStore, link: str, method: str = "GET", **headers: str) -> Answer:
    parts = urlsplit(link)
    path = parts.path.removeprefix("/files")
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer_link(store, method, path, parts.query, given)


def _link(store: LocalStore, content_type: str = "audio/mpeg", **options: object) -> str:
    arguments = {"content_type": content_type, "filename": "Käse.mp3", **options}
    return store.sign("t/song.mp3", **arguments)  # type: ignore[arg-type]


def test_a_link_gives_the_whole_file_with_its_type_and_name(stored: LocalStore) -> None:
    answer = _ask(stored, _link(stored))
    assert answer.status == 200
    assert b"".join(answer.body) == _CONTENT
    assert answer.headers["Content-Type"] == "audio/mpeg"
    assert answer.headers["Content-Length"] == "2560"
    assert answer.headers["Content-Disposition"] == (
        "inline; filename=\"K_se.mp3\"; filename*=UTF-8''K%C3%A4se.mp3"
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"].startswith("sandbox")


@pytest.mark.parametrize(
    ("content_type", "disposition"),
    [
        ("application/pdf", "inline"),
        ("image/png", "inline"),
        ("audio/mpeg; charset=binary", "inline"),
        ("text/html", "attachment"),
        ("image/svg+xml", "attachment"),
        ("application/xhtml+xml", "attachment"),
        ("text/plain", "attachment"),
        ("application/octet-stream", "attachment"),
    ],
)
def test_only_what_runs_no_scripts_is_shown_by_the_browser(
    stored: LocalStore, content_type: str, disposition: str
) -> None:
    answer = _ask(stored, _link(stored, content_type))
    assert answer.headers["Content-Disposition"].partition(";")[0] == disposition


def test_a_name_cannot_add_a_header(stored: LocalStore) -> None:
    answer = _ask(stored, _link(stored, filename='a"\r\nSet-Cookie: x=1;\\.mp3'))
    value = answer.headers["Content-Disposition"]
    assert "\r" not in value
    assert "\n" not in value
    assert value.startswith('inline; filename="a_Set-Cookie: x=1;_.mp3"')


@pytest.mark.parametrize(
    ("wanted", "status", "start", "stop"),
    [
        ("bytes=0-9", 206, 0, 10),
        ("bytes=2550-", 206, 2550, 2560),
        ("bytes=-5", 206, 2555, 2560),
        ("bytes=-99999", 206, 0, 2560),
        ("bytes=2559-99999", 206, 2559, 2560),
        ("bytes=0-", 206, 0, 2560),
        # What is no range, or several, is answered with the whole file, as the standard allows.
        ("bytes=5-2", 200, 0, 2560),
        ("bytes=0-1,5-6", 200, 0, 2560),
        ("lines=0-1", 200, 0, 2560),
        ("bytes=-", 200, 0, 2560),
        ("nonsense", 200, 0, 2560),
    ],
)
def test_byte_ranges(stored: LocalStore, wanted: str, status: int, start: int, stop: int) -> None:
    answer = _ask(stored, _link(stored), range=wanted)
    assert answer.status == status
    assert b"".join(answer.body) == _CONTENT[start:stop]
    assert answer.headers["Content-Length"] == str(stop - start)
    if status == 206:
        assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/2560"


@pytest.mark.parametrize("wanted", ["bytes=2560-", "bytes=9999-10000", "bytes=-0"])
def test_a_range_outside_of_the_file_is_refused(stored: LocalStore, wanted: str) -> None:
    answer = _ask(stored, _link(stored), range=wanted)
    assert answer.status == 416
    assert answer.headers["Content-Range"] == "bytes */2560"


def test_a_head_has_headers_alone_and_a_known_version_is_not_sent_again(
    stored: LocalStore,
) -> None:
    head = _ask(stored, _link(stored), "HEAD", range="bytes=0-9")
    assert (head.status, head.headers["Content-Length"], list(head.body)) == (206, "10", [])
    again = _ask(stored, _link(stored), if_none_match=head.headers["ETag"])
    assert (again.status, list(again.body)) == (304, [])
    changed = _ask(stored, _link(stored), range="bytes=0-9", if_range='"other"')
    assert changed.status == 200
    assert _ask(stored, _link(stored), "DELETE").status == 405


def _changed(link: str, **fields: str | None) -> str:
    parts = urlsplit(link)
    given = {**dict(parse_qsl(parts.query)), **fields}
    return f"{parts.path}?" + urlencode({k: v for k, v in given.items() if v is not None})


def test_a_link_that_was_changed_is_refused(stored: LocalStore) -> None:
    stored.put("t/other.mp3", [b"other"])
    link = _link(stored)
    for bad in (
        link.replace("song.mp3", "other.mp3"),
        _changed(link, expires="99999999999"),
        _changed(link, type="text/html"),
        _changed(link, name="x.html"),
        _changed(link, signature="0" * 64),
        _changed(link, signature="é"),
        _changed(link, key="00000000"),
        _changed(link, signature=None),
        _changed(link, more="x"),
        link + "&name=other",
        link.replace("t/song.mp3", "t/../t/song.mp3"),
        link.replace("t/song.mp3", ".trunkline/link-secrets"),
        link.partition("?")[0],
    ):
        answer = _ask(stored, bad)
        assert answer.status == 403, bad
        assert b"".join(answer.body) == b"The link is not valid.\n"


def test_an_expired_link_and_a_deleted_file_are_named(
    stored: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = _link(stored, expires_in=60)
    monkeypatch.setattr("trunkline.artifacts.links.time.time", lambda: 4e9)
    assert b"expired" in b"".join(_ask(stored, link).body)
    monkeypatch.undo()
    stored.delete(["t/song.mp3"])
    assert _ask(stored, link).status == 404


def test_two_secrets_are_active_at_a_time(stored: LocalStore) -> None:
    first = _link(stored)
    stored.secrets.rotate()
    second = _link(stored)
    assert _ask(stored, first).status == _ask(stored, second).status == 200
    stored.secrets.rotate()
    assert _ask(stored, first).status == 403
    assert _ask(stored, second).status == 200
    secrets = stored.folder / ".trunkline" / "link-secrets"
    assert secrets.stat().st_mode & 0o777 == 0o600


def test_secrets_can_come_from_the_environment(
    stored: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_LINK_SECRETS", "a" * 32)
    old = _link(stored)
    monkeypatch.setenv("TRUNKLINE_LINK_SECRETS", f"{'b' * 32},{'a' * 32}")
    assert _ask(stored, old).status == 200
    monkeypatch.setenv("TRUNKLINE_LINK_SECRETS", "b" * 32)
    assert _ask(stored, old).status == 403
    with pytest.raises(InvalidVariable):
        stored.secrets.rotate()
    monkeypatch.setenv("TRUNKLINE_LINK_SECRETS", "short")
    with pytest.raises(InvalidVariable):
        stored.sign("t/song.mp3")


def test_a_store_that_fails_is_not_blamed_on_the_link(
    stored: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: str) -> None:
        raise StoreError("disk")

    monkeypatch.setattr(stored, "head", fail)
    assert _ask(stored, _link(stored)).status == 503


@pytest.fixture
def served(tmp_path: Path) -> Iterator[LocalStore]:
    """A store whose links a small HTTP server answers, as the real one will."""
    with serving(tmp_path / "served") as store:
        yield store


def test_ta_74_a_player_can_seek_through_a_link_without_signing_in(served: LocalStore) -> None:
    served.put("a b/Lied ü.mp3", [_CONTENT])
    link = served.sign("a b/Lied ü.mp3", content_type="audio/mpeg", filename="Lied ü.mp3")
    whole = httpx2.get(link)
    assert whole.content == _CONTENT
    assert whole.headers["Accept-Ranges"] == "bytes"
    part = httpx2.get(link, headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, _CONTENT[100:200])
    assert re.search(r"expires=\d+", link)
    assert httpx2.get(link[:-1]).status_code == 403
