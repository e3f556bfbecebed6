"""What every store does: the same suite on a folder, on Swift and on rclone."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from trunkline.artifacts import LocalStore, Store
from trunkline.artifacts.store import CHUNK
from trunkline.errors import FileMissing, InvalidArgument, StoreError

_LARGE = os.urandom(CHUNK) * 21


def _content(store: Store, path: str, start: int = 0, stop: int | None = None) -> bytes:
    return b"".join(store.read(path, start, stop))


def _paths(store: Store, prefix: str = "", after: str = "") -> list[str]:
    return [file.path for file in store.list(prefix, after)]


@pytest.mark.parametrize("content", [b"", b"abc", _LARGE], ids=["empty", "small", "large"])
def test_what_was_written_is_read_back_with_its_size_and_hash(store: Store, content: bytes) -> None:
    chunks = (content[start : start + CHUNK] for start in range(0, len(content), CHUNK))
    written = store.put("a/b/one.bin", chunks, content_type="text/plain", filename="one.txt")
    assert written.bytes == len(content)
    assert written.sha256 == hashlib.sha256(content).hexdigest()
    assert store.head("a/b/one.bin").bytes == len(content)
    assert _content(store, "a/b/one.bin") == content


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 10), (5, 15), (len(_LARGE) - 3, None), (CHUNK - 2, 3 * CHUNK + 1), (7, 7), (0, None)],
)
def test_a_range_is_read_alone(store: Store, start: int, stop: int | None) -> None:
    store.put("ranged.bin", [_LARGE])
    assert _content(store, "ranged.bin", start, stop) == _LARGE[start:stop]
    # A second read of a server that cannot do it takes the fallback at once.
    assert _content(store, "ranged.bin", start, stop) == _LARGE[start:stop]


def test_a_range_past_the_end_is_empty_or_cut(store: Store) -> None:
    store.put("short.bin", [b"0123456789"])
    assert _content(store, "short.bin", 8, 100) == b"89"
    assert _content(store, "short.bin", 10, 20) == b""
    assert _content(store, "short.bin", 30, None) == b""


def test_a_read_that_is_closed_ends(store: Store) -> None:
    store.put("large.bin", [_LARGE])
    chunks = store.read("large.bin")
    assert next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert list(chunks) == []


def test_a_missing_file_is_reported_before_the_first_chunk(store: Store) -> None:
    with pytest.raises(FileMissing):
        store.read("nothing/here.bin")
    with pytest.raises(FileMissing):
        store.head("nothing/here.bin")
    store.delete(["nothing/here.bin"])


@pytest.mark.parametrize("size", [3, 21 * CHUNK], ids=["small", "large"])
def test_content_that_fails_leaves_nothing_visible(store: Store, size: int) -> None:
    def failing() -> Iterator[bytes]:
        yield b"x" * size
        yield b"y" * size
        raise FileNotFoundError("the source broke")

    with pytest.raises(FileNotFoundError, match="the source broke"):
        store.put("broken/file.bin", failing())
    assert _paths(store) == []
    with pytest.raises(FileMissing):
        store.head("broken/file.bin")


def test_a_file_is_replaced_as_a_whole(store: Store) -> None:
    store.put("one.bin", [b"first"])
    store.put("one.bin", [b"second, longer"])
    assert _content(store, "one.bin") == b"second, longer"


def test_a_file_is_created_once(store: Store) -> None:
    assert store.create("marker.json", b"mine")
    assert not store.create("marker.json", b"yours")
    assert _content(store, "marker.json") == b"mine"


def test_deleted_files_are_gone(store: Store) -> None:
    for name in ("a/one", "a/two", "b/three"):
        store.put(name, [b"x"])
    store.delete(["a/one", "b/three", "a/never"])
    assert _paths(store) == ["a/two"]


def test_files_are_listed_in_the_order_of_their_paths(store: Store) -> None:
    names = ["a-b/x", "a/b/c", "a/b/d", "a/e", "ab", "b/1"]
    for name in reversed(names):
        store.put(name, [name.encode()])
    assert _paths(store) == names
    assert _paths(store, "a/") == ["a/b/c", "a/b/d", "a/e"]
    assert _paths(store, "a/b/c") == ["a/b/c"]
    for place in range(len(names)):
        assert _paths(store, after=names[place]) == names[place + 1 :]
    assert [file.bytes for file in store.list()] == [len(name) for name in names]


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "a//b", "../x", "a/../b", ".hidden", "a/.trunkline", "a\\b", "a\nb", "a/"],
)
def test_a_path_that_could_leave_the_store_is_refused(store: Store, path: str) -> None:
    for refused in (
        lambda: store.put(path, [b"x"]),
        lambda: store.create(path, b"x"),
        lambda: store.read(path),
        lambda: store.head(path),
        lambda: store.delete([path]),
        lambda: store.sign(path),
    ):
        with pytest.raises(InvalidArgument):
            refused()


def test_a_store_can_be_sent_to_another_process(store: Store) -> None:
    store.put("sent.bin", [b"content"])
    again: Store = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes
    assert _content(again, "sent.bin") == b"content"
    assert again.address == store.address
    # Links that the other process signs lead to the same server.
    assert again.sign("sent.bin").partition("?")[0] == store.sign("sent.bin").partition("?")[0]


def test_links_of_a_bucket_work_without_signing_in(store: Store) -> None:
    store.put("song.mp3", [b"0123456789"], content_type="audio/mpeg", filename="Käse 1.mp3")
    link = store.sign("song.mp3", expires_in=60)
    if isinstance(store, LocalStore):
        assert link.startswith("http://links.invalid/files/song.mp3?expires=")
        return
    answer = httpx2.get(link, headers={"Range": "bytes=2-4"})
    assert answer.content == b"234"
    assert answer.headers["Content-Type"] == "audio/mpeg"
    assert answer.headers["Content-Disposition"].startswith("inline;")
    assert "filename*=UTF-8''K%C3%A4se%201.mp3" in answer.headers["Content-Disposition"]
    assert httpx2.get(link.replace("song.mp3", "other.mp3")).is_error
    upload = store.sign("uploaded.bin", method="PUT", expires_in=60)
    assert httpx2.put(upload, content=b"abc").is_success
    assert _content(store, "uploaded.bin") == b"abc"


def test_a_local_store_signs_only_for_reading_and_uploading(local: LocalStore) -> None:
    with pytest.raises(StoreError, match="signs no links for DELETE"):
        local.sign("a.bin", method="DELETE")


def test_a_local_file_is_never_reached_through_a_link(local: LocalStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    local.put("inside/file", [b"x"])
    (local.folder / "linked").symlink_to(outside)
    (local.folder / "inside" / "link").symlink_to(outside / "secret")
    for refused in (
        lambda: local.read("linked/secret"),
        lambda: local.read("inside/link"),
        lambda: local.put("linked/new", [b"x"]),
        lambda: local.delete(["linked/secret"]),
    ):
        with pytest.raises(StoreError):
            refused()
    local.put("inside/link", [b"replaced"])
    assert (outside / "secret").read_text() == "secret"
    assert not (outside / "new").exists()
    assert _paths(local) == ["inside/file", "inside/link"]


def test_a_local_pipe_is_not_read(local: LocalStore) -> None:
    local.put("a", [b"x"])
    os.mkfifo(local.folder / "pipe")
    with pytest.raises(StoreError):
        local.read("pipe")
    assert _paths(local) == ["a"]
