"""Artifacts from the handler to the reader, through a real worker."""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.artifacts import process_app
from tests.support.internals import storage
from tests.worker.scene import Scene
from trunkline import Context, Retry, SyncContext
from trunkline.artifacts import AsyncStore, LocalStore
from trunkline.db.calls.artifacts import set_storage_quota
from trunkline.db.connect import connect
from trunkline.db.runner import run
from trunkline.errors import ArtifactGone, FileMissing, JobFailed, UnknownArtifact
from trunkline.model import UploadedFile
from trunkline.worker.sweeper import Sweeper


@pytest.fixture
def stored(scene: Scene, local: LocalStore) -> Scene:
    scene.app.store = local
    return scene


def _files(store: LocalStore) -> list[str]:
    return [file.path for file in store.list() if "/" in file.path]


async def test_an_artifact_is_published_when_its_job_completes(
    stored: Scene, local: LocalStore
) -> None:
    """TA-46: the link is signed when it is asked for."""
    uploaded: list[UploadedFile] = []
    may_end = asyncio.Event()

    @stored.app.task
    async def speak(ctx: Context) -> None:
        async def sound() -> AsyncIterator[bytes]:
            for number in range(10):
                yield bytes([number]) * 1000

        uploaded.append(
            await ctx.artifact("chapter 1.mp3", sound(), kind="audio_mp3", duration=180)
        )
        await may_end.wait()

    async with stored.working():
        job = await speak.options(tenant="acme/../x").enqueue()
        await stored.until_state(job.id, "running")
        while not uploaded:
            await asyncio.sleep(0.01)
        assert await job.artifacts() == []
        may_end.set()
        await job.wait()
    (artifact,) = await job.artifacts()
    assert artifact.id == uploaded[0].id
    assert (artifact.name, artifact.kind, artifact.duration) == ("chapter 1.mp3", "audio_mp3", 180)
    assert (artifact.content_type, artifact.bytes, artifact.tenant) == (
        "audio/mpeg",
        10_000,
        "acme/../x",
    )
    content = await stored.app.artifacts.read(artifact)
    assert hashlib.sha256(content).hexdigest() == artifact.sha256 == uploaded[0].sha256
    assert _files(local) == [artifact.storage_path]
    assert f"/{job.id}/audio/{job.id}-1-" in artifact.storage_path
    chunks = await stored.app.artifacts.open(artifact, start=998, stop=1002)
    assert [chunk async for chunk in chunks] == [b"\0\0\1\1"]
    link = await stored.app.artifacts.link(artifact)
    assert "chapter_1.mp3?expires=" in link


async def test_content_of_every_form_is_uploaded(stored: Scene, tmp_path: Path) -> None:
    source = tmp_path / "source.txt"
    source.write_bytes(b"from a path")

    class AsyncFile:
        def __init__(self) -> None:
            self._parts = [b"from an ", b"asynchronous file", b""]

        async def read(self, _size: int) -> bytes:
            return self._parts.pop(0)

    @stored.app.task
    async def work(ctx: Context) -> None:
        await ctx.artifact("bytes.txt", b"from bytes")
        await ctx.artifact("path.txt", source)
        await ctx.artifact("file.txt", io.BytesIO(b"from a file"))
        await ctx.artifact("list.txt", [b"from ", b"a list"])
        await ctx.artifact("async.txt", AsyncFile())  # type: ignore[arg-type]

    async with stored.working():
        job = await work.enqueue()
        await job.wait()
    contents = {
        found.name: await stored.app.artifacts.read(found) for found in await job.artifacts()
    }
    assert contents == {
        "bytes.txt": b"from bytes",
        "path.txt": b"from a path",
        "file.txt": b"from a file",
        "list.txt": b"from a list",
        "async.txt": b"from an asynchronous file",
    }


async def test_handlers_in_threads_and_processes_upload_too(stored: Scene) -> None:
    @stored.app.task
    def render(ctx: SyncContext) -> str:
        def lines() -> Iterator[bytes]:
            for number in range(3):
                yield b"%d\n" % number

        return ctx.artifact("lines.txt", lines()).sha256

    async with stored.working():
        job = await render.enqueue()
        digest = await job.wait()
    assert digest == hashlib.sha256(b"0\n1\n2\n").hexdigest()
    process_app.app.store = stored.app.store
    with process_app.app.connect_to(stored.database.dsn):
        stored.app = process_app.app
        async with stored.working():
            job = await process_app.render.enqueue("text")
            assert await job.wait() == hashlib.sha256(b"text").hexdigest()
            (artifact,) = await job.artifacts()
            assert await process_app.app.artifacts.read(artifact) == b"text"
            large = await process_app.large.enqueue(400_000)
            assert await large.wait() == "x" * 400_000
        await process_app.app.close()


async def test_a_retry_publishes_its_own_files_and_the_sweep_removes_the_others(
    stored: Scene, local: LocalStore
) -> None:
    @stored.app.task(max_attempts=3)
    async def work(ctx: Context) -> None:
        await ctx.artifact("page.txt", b"attempt %d" % ctx.attempt)
        if ctx.attempt == 1:
            await ctx.artifact("other.txt", b"only in the first")
            raise Retry(after=0)

    async with stored.working():
        job = await work.enqueue()
        await job.wait()
    (artifact,) = await job.artifacts()
    assert await stored.app.artifacts.read(artifact) == b"attempt 2"
    assert len(_files(local)) == 3
    await _swept(stored)
    assert _files(local) == [artifact.storage_path]


async def test_of_two_uploads_with_one_name_the_last_counts(
    stored: Scene, local: LocalStore
) -> None:
    @stored.app.task
    async def work(ctx: Context) -> None:
        await ctx.artifact("page.txt", b"first")
        await ctx.artifact("page.txt", b"second")

    async with stored.working():
        job = await work.enqueue()
        await job.wait()
    (artifact,) = await job.artifacts()
    assert await stored.app.artifacts.read(artifact) == b"second"
    await _swept(stored)
    assert _files(local) == [artifact.storage_path]


async def test_a_failing_source_fails_the_attempt_and_leaves_nothing(
    stored: Scene, local: LocalStore
) -> None:
    @stored.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        async def broken() -> AsyncIterator[bytes]:
            yield b"x" * 3_000_000
            raise ValueError("the provider went away")

        await ctx.artifact("page.txt", broken())

    async with stored.working():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match="the provider went away"):
            await job.wait()
    assert _files(local) == []
    assert not list((local.folder / ".trunkline" / "uploads").iterdir())
    assert await job.artifacts() == []


async def test_a_quota_that_is_spent_in_the_middle_refuses_the_upload(
    stored: Scene, local: LocalStore
) -> None:
    passed = 0

    @stored.app.task
    async def work(ctx: Context, chunks: int) -> None:
        async def content() -> AsyncIterator[bytes]:
            nonlocal passed
            for _ in range(chunks):
                passed += 1
                yield b"x" * (1 << 20)

        await ctx.artifact("big.bin", content())

    with connect(stored.database.dsn) as connection:
        run(connection, set_storage_quota("acme", 10 << 20))
    async with stored.working():
        fits = await work.options(tenant="acme").enqueue(8)
        await fits.wait()
        too_large = await work.options(tenant="acme").enqueue(100)
        with pytest.raises(JobFailed, match="storage quota is used up"):
            await too_large.wait()
        other = await work.options(tenant="other").enqueue(11)
        await other.wait()
    assert passed < 8 + 11 + 10
    assert len(_files(local)) == 2
    # Room is back as soon as an artifact is deleted.
    (artifact,) = await fits.artifacts()
    assert await stored.app.artifacts.delete(artifact)
    async with stored.working():
        again = await work.options(tenant="acme").enqueue(9)
        await again.wait()


async def test_a_deleted_artifact_is_a_tombstone_without_a_file(
    stored: Scene, local: LocalStore
) -> None:
    @stored.app.task
    async def work(ctx: Context) -> None:
        await ctx.artifact("page.html", b"<script>", content_type="text/html")

    async with stored.working():
        job = await work.enqueue()
        await job.wait()
    (artifact,) = await job.artifacts()
    assert await stored.app.artifacts.delete(artifact, reason="not wanted")
    assert not await stored.app.artifacts.delete(artifact)
    assert await job.artifacts() == []
    with pytest.raises(ArtifactGone, match="not wanted"):
        await stored.app.artifacts.open(artifact.id)
    with pytest.raises(ArtifactGone):
        await stored.app.artifacts.link(artifact.id)
    await _swept(stored)
    assert _files(local) == []
    with pytest.raises(UnknownArtifact):
        await stored.app.artifacts.get(job.id)
    with pytest.raises(FileMissing):
        await stored.app.artifacts.open(artifact)


@pytest.mark.parametrize("size", [300_000, 3_000_000])
async def test_a_large_result_is_stored_and_read_back(stored: Scene, size: int) -> None:
    @stored.app.task
    async def work() -> list[str]:
        return ["x" * size, "end"]

    async with stored.working():
        job = await work.enqueue()
        assert await job.wait() == ["x" * size, "end"]
    assert (await job.get()).result == ["x" * size, "end"]
    (artifact,) = await job.artifacts()
    assert (artifact.kind, artifact.name) == ("result", "result.json")
    assert stored.job(job.id).result == {"$artifact": str(artifact.id)}


async def test_a_result_over_the_bound_is_refused(stored: Scene, local: LocalStore) -> None:
    @stored.app.task
    async def work() -> str:
        return "x" * 50_000_000

    @stored.app.task
    async def numbers() -> list[int]:
        return [1] * 60_000

    async with stored.working():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match="has 50000002 bytes, more than 33554432"):
            await job.wait()
        # Short numbers take more as jsonb than as text.
        small = await numbers.enqueue()
        assert await small.wait() == [1] * 60_000
    assert len(_files(local)) == 1


async def test_a_handler_that_returns_a_forged_reference_reaches_nothing(
    stored: Scene,
) -> None:
    @stored.app.task
    async def victim(ctx: Context) -> None:
        await ctx.artifact("secret.json", b'"secret"')

    @stored.app.task
    async def forger(reference: str) -> dict[str, str]:
        return {"$artifact": reference}

    async with stored.working():
        job = await victim.enqueue()
        await job.wait()
        (artifact,) = await job.artifacts()
        forged = await forger.enqueue(str(artifact.id))
        assert await forged.wait() == {"$artifact": str(artifact.id)}
        text = await forger.enqueue("no uuid")
        assert await text.wait() == {"$artifact": "no uuid"}


async def test_without_a_store_an_upload_fails_with_what_to_do(scene: Scene) -> None:
    @scene.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        await ctx.artifact("page.txt", b"x")

    async with scene.working():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match=r"work uploads page\.txt, and there is no store"):
            await job.wait()


@pytest.mark.parametrize(
    "name", ["", "a/b", "a\\b", "..", ". .", "a\nb", "a\0b", "a\u202eb", "x" * 201, "a\ud800"]
)
async def test_a_name_that_could_do_harm_is_refused(stored: Scene, name: str) -> None:
    @stored.app.task
    async def work(ctx: Context) -> None:
        await ctx.artifact(name, b"x")

    async with stored.working():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match="artifact is not valid"):
            await job.wait()


async def test_a_worker_reports_its_store_to_the_doctor(stored: Scene, local: LocalStore) -> None:
    @stored.app.task
    async def work() -> None:
        """Ends at once."""

    async with stored.working():
        job = await work.enqueue()
        await job.wait()
        stores = stored.rows("select detail ->> 'store' from trunkline.workers")
        assert [tuple(row) for row in stores] == [(local.address,)]


async def _swept(scene: Scene) -> None:
    """Let the engine's duty and a sweeper do what they do on their own in a while."""
    storage.run_duty(scene.superuser)
    storage.make_removals_due(scene.superuser)
    sweeper = Sweeper(scene.database.dsn, "sweeper", AsyncStore(scene.app.open_store()))
    await sweeper.run_once()
    await sweeper.close()
