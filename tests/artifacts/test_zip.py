"""Streaming archives."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trunkline.artifacts import AsyncStore, LocalStore, ZipEntry, zip_stream
from trunkline.artifacts.names import entry_names
from trunkline.artifacts.zipping import MANIFEST, zip_chunks
from trunkline.errors import FileDamaged


def _zip(store: LocalStore, *entries: ZipEntry) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(b"".join(zip_chunks(store, entries))))
    assert archive.testzip() is None
    return archive


def test_files_are_packed_and_text_is_compressed(local: LocalStore) -> None:
    at = datetime(2026, 3, 4, 5, 6, 8, tzinfo=UTC)
    text, sound = b"hello " * 100_000, os.urandom(3_000_000)
    local.put("a/text", [text])
    local.put("a/sound", [sound])
    archive = _zip(
        local,
        ZipEntry("notes.txt", "a/text", len(text), "text/plain", at),
        ZipEntry("song.mp3", "a/sound", len(sound), "audio/mpeg", at),
        ZipEntry("drawing.svg", "a/text", None, "image/svg+xml", None),
    )
    assert archive.namelist() == ["notes.txt", "song.mp3", "drawing.svg"]
    assert archive.read("notes.txt") == text
    assert archive.read("song.mp3") == sound
    assert archive.getinfo("notes.txt").compress_type == zipfile.ZIP_DEFLATED
    assert archive.getinfo("notes.txt").compress_size < len(text) // 50
    assert archive.getinfo("song.mp3").compress_type == zipfile.ZIP_STORED
    assert archive.getinfo("drawing.svg").compress_type == zipfile.ZIP_DEFLATED
    assert archive.getinfo("song.mp3").date_time == (2026, 3, 4, 5, 6, 8)


def test_an_archive_of_nothing_is_an_archive(local: LocalStore) -> None:
    assert _zip(local).namelist() == []


def test_ex_55_names_are_safe_and_unique() -> None:
    assert entry_names(
        [
            "résumé.pdf",
            "RÉSUMÉ.PDF",
            "résumé.pdf",
            "../../etc/passwd",
            "a/b\\c.pdf",
            "con",
            "COM1.txt",
            "nul.tar.gz",
            " .hidden. ",
            "tab\there.pdf",
            "a\u202egpj.exe",
            "..",
            "",
            "q?*<>|:.pdf",
        ]
    ) == [
        "résumé.pdf",
        "RÉSUMÉ (2).PDF",
        "résumé (3).pdf",
        "_.._etc_passwd",
        "a_b_c.pdf",
        "_con",
        "_COM1.txt",
        "_nul.tar.gz",
        "hidden",
        "tab_here.pdf",
        "a_gpj.exe",
        "file",
        "file (2)",
        "q______.pdf",
    ]


def test_long_names_keep_their_extension() -> None:
    (name,) = entry_names(["ü" * 300 + ".pdf"])
    assert name.endswith("ü.pdf")
    assert len(name.encode()) <= 200
    names = entry_names(["x" * 300] * 3)
    assert len(set(names)) == 3


def test_ex_55_a_missing_file_is_listed_in_a_manifest(local: LocalStore) -> None:
    local.put("a/there", [b"there"])
    archive = _zip(
        local,
        ZipEntry("one.txt", "a/there"),
        ZipEntry("two.txt", "a/gone"),
        ZipEntry(MANIFEST, "a/there"),
    )
    assert archive.namelist() == ["one.txt", "MISSING (2).txt", MANIFEST]
    manifest = archive.read(MANIFEST).decode()
    assert manifest.startswith("1 of 3 files are missing")
    assert "two.txt: The store has no file a/gone" in manifest


@pytest.mark.parametrize(
    "entry",
    [
        ZipEntry("one.txt", "a/file", 999),
        ZipEntry("one.txt", "a/file", None, None, None, "0" * 64),
    ],
    ids=["size", "hash"],
)
def test_a_damaged_file_ends_the_archive(local: LocalStore, entry: ZipEntry) -> None:
    local.put("a/file", [b"content"])
    with pytest.raises(FileDamaged):
        b"".join(zip_chunks(local, [entry]))


class _Watched(LocalStore):
    """Counts reads that are open."""

    open = 0

    def read(self, path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        def counted(chunks: Iterator[bytes]) -> Iterator[bytes]:
            _Watched.open += 1
            try:
                yield from chunks
            finally:
                _Watched.open -= 1

        return counted(super().read(path, start, stop))


def test_a_client_that_leaves_ends_the_reads(tmp_path: Path) -> None:
    store = _Watched(tmp_path)
    store.put("a/large", [os.urandom(1 << 20)] * 20)

    async def leave(how: Callable[[], None]) -> None:
        chunks = zip_stream(AsyncStore(store), [ZipEntry("large.bin", "a/large")] * 3)
        assert await anext(chunks)
        assert _Watched.open == 1
        how()
        await chunks.aclose()  # type: ignore[attr-defined]
        assert _Watched.open == 0

    asyncio.run(leave(lambda: None))


def test_compression_does_not_hold_up_the_event_loop(local: LocalStore) -> None:
    local.put("a/text", [os.urandom(1 << 18) * 4] * 30)

    async def measure() -> float:
        longest = 0.0
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def beat() -> None:
            nonlocal longest
            while not done.is_set():
                before = loop.time()
                await asyncio.sleep(0.001)
                longest = max(longest, loop.time() - before)

        beating = asyncio.create_task(beat())
        size = 0
        async for chunk in zip_stream(AsyncStore(local), [ZipEntry("t.txt", "a/text")] * 2):
            size += len(chunk)
        done.set()
        await beating
        assert size > 1000
        return longest

    # Compressing one of these files takes a second.
    assert asyncio.run(measure()) < 0.5


def test_more_files_than_a_plain_zip_can_hold(local: LocalStore) -> None:
    local.put("a/tiny", [b"x"])
    count = 66_000
    size = 0
    tail = b""
    for chunk in zip_chunks(local, (ZipEntry(f"{n}.bin", "a/tiny") for n in range(count))):
        size += len(chunk)
        tail = (tail + chunk)[-200:]
    # The ZIP64 records of the end.
    assert b"PK\x06\x06" in tail
    assert b"PK\x06\x07" in tail


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ex_54_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    grown = _grown(
        tmp_path,
        """
        for number in range(1000):
            store.put(f"a/{number}.bin", [bytes(300_000)])
        entries = [ZipEntry(f"{n}.mp3", f"a/{n}.bin", 300_000) for n in range(1000)]
        async def consume():
            async for _ in zip_stream(AsyncStore(store), entries):
                pass
        """,
    )
    assert grown <= 60


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_an_upload(tmp_path: Path) -> None:
    grown = _grown(
        tmp_path,
        """
        async def content():
            for _ in range(256):
                yield os.urandom(1 << 20)
        async def consume():
            written = await AsyncStore(store).put("a/large.bin", content())
            assert written.bytes == 256 << 20
        """,
    )
    assert grown <= 60


_MEASURED = """
import asyncio, os, sys
from trunkline.artifacts import AsyncStore, LocalStore, ZipEntry, zip_stream
store = LocalStore(sys.argv[1])
{body}
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
asyncio.run(consume())
print((peak() - before) // 1024)
"""


def _grown(folder: Path, body: str) -> int:
    """Return by how many MB the peak of a process grows."""
    lines = [line[8:] for line in body.strip("\n").splitlines()]
    ended = subprocess.run(
        [sys.executable, "-c", _MEASURED.format(body="\n".join(lines)), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)
