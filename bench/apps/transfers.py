"""Moves files in a separate process, whose memory is measured: ``python -m bench.apps.transfers``.

Prints one JSON object. `growth_mb` is how far its memory has risen over that of the idle process.
"""

import asyncio
import hashlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from trunkline.artifacts import AsyncStore, LocalStore, ZipEntry, zip_stream
from trunkline.artifacts.store import CHUNK

_KINDS = (("mp3", "audio/mpeg"), ("txt", "text/plain"))


async def upload(folder: Path, mb: int, repetitions: int) -> dict[str, object]:
    """Copy and upload one file in turns."""
    source = folder / "source.bin"
    with source.open("wb") as file:
        for _ in range(mb):
            file.write(os.urandom(CHUNK))
    store = AsyncStore(LocalStore(folder / "store"))
    before = _peak_mb()
    times: dict[str, list[float]] = {"copy": [], "upload": []}

    async def copy() -> None:
        _copy(source, folder / "copy.bin")

    async def put() -> None:
        await store.put("a/file.bin", source)

    for number in range(repetitions):
        turns: list[tuple[str, Callable[[], Awaitable[None]]]] = [("copy", copy), ("upload", put)]
        for name, action in turns[:: -1 if number % 2 else 1]:
            begin = time.perf_counter()
            await action()
            times[name].append(time.perf_counter() - begin)
    await store.close()
    return {**times, "growth_mb": _peak_mb() - before}


async def archive(folder: Path, files: int, file_kb: int) -> dict[str, object]:
    """Pack many files, half of which are compressed, and drop the archive."""
    store = LocalStore(folder / "store")
    entries = []
    for number in range(files):
        extension, content_type = _KINDS[number % 2]
        path = f"a/{number}.{extension}"
        content = os.urandom(file_kb << 9).hex().encode()
        written = store.put(path, [content])
        name = f"chapter {number}.{extension}"
        entries.append(ZipEntry(name, path, written.bytes, content_type, sha256=written.sha256))
    reader = AsyncStore(store)
    before = _peak_mb()
    begin = time.perf_counter()
    size = 0
    async for chunk in zip_stream(reader, entries):
        size += len(chunk)
    seconds = time.perf_counter() - begin
    await reader.close()
    return {"seconds": seconds, "archive_bytes": size, "growth_mb": _peak_mb() - before}


def _copy(source: Path, target: Path) -> None:
    """Do what anyone would write: copy, hash, and flush to disk."""
    digest = hashlib.sha256()
    with source.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(CHUNK):
            digest.update(chunk)
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())


def _peak_mb() -> float:
    """Return the largest resident memory of this process so far."""
    with Path("/proc/self/status").open(encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    _actions = {"upload": upload, "archive": archive}
    _numbers = [int(number) for number in sys.argv[3:]]
    print(json.dumps(asyncio.run(_actions[sys.argv[1]](Path(sys.argv[2]), *_numbers))))
