"""Stores that are full, slow, refuse, or fail in the middle."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.artifacts.between import between
from tests.artifacts.conftest import open_bucket
from tests.support.s3_servers import S3Server
from trunkline.artifacts import AsyncStore, LocalStore, ObjectStore
from trunkline.artifacts.checks import check_store
from trunkline.errors import (
    FileMissing,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnreachable,
)

_LARGE = 30 << 20


def _large() -> Iterator[bytes]:
    for _ in range(_LARGE >> 20):
        yield bytes(1 << 20)


def test_a_bucket_that_answers_500_halfway_leaves_nothing_visible(swift: S3Server) -> None:
    # The third part of a multipart upload, and every repetition of it.
    def judge(method: str, path: str, count: int) -> int | None:
        return 500 if method == "PUT" and "partNumber=" in path and count >= 3 else None

    with between(swift, judge) as store:
        with pytest.raises(StoreUnreachable):
            store.put("half/file.bin", _large())
        assert list(store.list()) == []
        with pytest.raises(FileMissing):
            store.head("half/file.bin")


def test_a_bucket_that_fails_for_a_moment_is_tried_again(swift: S3Server) -> None:
    def judge(method: str, _path: str, count: int) -> int | None:
        return 503 if method == "PUT" and count == 1 else None

    with between(swift, judge) as store:
        assert store.put("once/file.bin", _large()).bytes == _LARGE
        assert store.head("once/file.bin").bytes == _LARGE


def test_a_full_bucket_is_named(swift: S3Server) -> None:
    with (
        between(swift, lambda method, _path, _count: 507 if method == "PUT" else None) as store,
        pytest.raises(StoreFull),
    ):
        store.put("full/file.bin", [b"x"])


def test_wrong_credentials_are_named(swift: S3Server) -> None:
    store = open_bucket(swift, secret="wrong")
    with pytest.raises(StoreDenied) as refused:
        store.put("denied/file.bin", [b"x"])
    assert "wrong" not in str(refused.value)
    results = list(check_store(store))
    assert not any(result.ok for result in results if result.check != "sign a link")


def test_a_bucket_that_is_away_is_unreachable() -> None:
    store = open_bucket(S3Server("http://127.0.0.1:1", "a", "b", "bucket", ()))
    for refused in (
        lambda: store.put("a/b", [b"x"]),
        lambda: store.read("a/b"),
        lambda: store.delete(["a/b"]),
        lambda: list(store.list()),
        # The path is part of the error's text.
        lambda: store.put("a/507/QuotaExceeded.txt", [b"x"]),
    ):
        with pytest.raises(StoreUnreachable):
            refused()


def test_the_error_of_a_source_comes_first_if_the_parts_cannot_be_taken_back(
    swift: S3Server,
) -> None:
    def broken() -> Iterator[bytes]:
        yield from _large()
        raise LookupError("the source broke")

    with (
        between(swift, lambda method, *_: 404 if method == "DELETE" else None) as store,
        pytest.raises(LookupError, match="the source broke"),
    ):
        store.put("half/file.bin", broken())


def test_a_bucket_that_never_answers_does_not_hold_a_handler_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = S3Server(f"http://127.0.0.1:{silent.getsockname()[1]}", "a", "b", "bucket", ())
        store = ObjectStore(
            "s3://bucket",
            options={
                "endpoint": server.endpoint,
                "access_key_id": "a",
                "secret_access_key": "b",
                "region": "us-east-1",
            },
            client_options={"allow_http": True, "timeout": "1s"},
            retry_config={"max_retries": 0},
        )
        with pytest.raises(StoreUnreachable):
            store.put("slow/file.bin", [b"x"])


def test_a_cut_download_is_not_taken_for_the_end(swift: S3Server) -> None:
    store = open_bucket(swift)
    store.put("cut/file.bin", _large())
    chunks = store._streamed(  # noqa: SLF001 - a stream that ends early
        "cut/file.bin", _Short(), 10
    )
    with pytest.raises(StoreUnreachable, match="3 of 10 bytes"):
        list(chunks)


class _Short:
    def stream(self, **_options: int) -> list[bytes]:
        return [b"abc"]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EACCES, StoreDenied),
        (errno.EROFS, StoreDenied),
        (errno.EIO, StoreUnreachable),
    ],
)
def test_errors_of_a_disk_are_named_and_leave_nothing(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StoreError]
) -> None:
    local.put("a/first.bin", [b"x"])
    original = os.write
    left = 3

    def write(descriptor: int, data: Any) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(number, os.strerror(number))
        return original(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(kind):
        local.put("a/second.bin", _large())
    monkeypatch.undo()
    assert [file.path for file in local.list()] == ["a/first.bin"]
    assert list((local.folder / ".trunkline" / "uploads").iterdir()) == []


def test_a_cancelled_upload_ends_and_leaves_nothing(local: LocalStore) -> None:
    async def scenario() -> None:
        store = AsyncStore(local)
        started = asyncio.Event()

        async def endless() -> Any:
            while True:
                started.set()
                yield bytes(1 << 20)
                await asyncio.sleep(0.001)

        uploading = asyncio.create_task(store.put("a/endless.bin", endless()))
        await started.wait()
        uploading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await uploading
        await store.close()

    asyncio.run(scenario())
    assert list(local.list()) == []
    assert list((local.folder / ".trunkline" / "uploads").iterdir()) == []


def test_the_check_reports_each_operation(
    local: LocalStore, swift: S3Server, rclone: S3Server, tmp_path: Path
) -> None:
    for store in (local, open_bucket(swift), open_bucket(rclone)):
        results = list(check_store(store))
        assert [result for result in results if not result.ok] == []
        assert len(results) == 8
        assert list(store.list()) == []
    messages = {result.check: result.message for result in check_store(open_bucket(rclone))}
    assert messages["read a range"] == "equal, but the whole file is transferred"
    assert messages["create once"] == "by looking first"
    (tmp_path / "file").write_text("no folder")
    assert not any(result.ok for result in check_store(LocalStore(tmp_path / "file" / "x")))
