"""Handlers whose store fails in the middle: a clear error, and nothing visible or reserved."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.artifacts.between import between
from tests.artifacts.sweeping import files_of
from tests.support.internals import storage
from tests.support.s3_servers import S3Server
from tests.worker.scene import Scene
from trunkline import Context
from trunkline.artifacts import AsyncStore
from trunkline.artifacts.names import check_name
from trunkline.db.calls.artifacts import set_storage_quota
from trunkline.db.connect import connect
from trunkline.db.runner import run
from trunkline.errors import (
    InvalidArtifact,
    JobFailed,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from trunkline.worker.sweeper import Sweeper

_MB = 1 << 20


async def _content(size: int) -> AsyncIterator[bytes]:
    for _ in range(size):
        yield bytes(_MB)


@pytest.mark.parametrize(
    ("status", "kind"), [(500, StoreUnreachable), (507, StoreFull), (403, StoreDenied)]
)
async def test_a_store_that_fails_in_the_middle_leaves_nothing_reserved_or_visible(
    scene: Scene, swift: S3Server, status: int, kind: type[StoreError]
) -> None:
    fails = True
    failures: list[StoreError] = []

    def judge(method: str, path: str, _count: int) -> int | None:
        return status if fails and method == "PUT" and "partNumber=2" in path else None

    @scene.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        nonlocal fails
        try:
            await ctx.artifact("big.bin", _content(20))
        except StoreError as error:
            failures.append(error)
        fails = False
        # The quota has no room for both.
        await ctx.artifact("big.bin", _content(20))

    with connect(scene.database.dsn) as connection:
        run(connection, set_storage_quota("acme", 30 * _MB))
    with between(swift, judge) as store:
        scene.app.store = store
        async with scene.working():
            job = await work.options(tenant="acme").enqueue()
            await job.wait()
        assert [type(error) for error in failures] == [kind]
        (artifact,) = await job.artifacts()
        assert artifact.bytes == 20 * _MB
        assert files_of(store) == [artifact.storage_path]
        assert scene.value("select reserved_bytes from trunkline.storage") == 0
        # The path of the upload that failed waits to be removed.
        storage.make_removals_due(scene.superuser)
        sweeper = Sweeper(scene.database.dsn, "sweeper", AsyncStore(store))
        await sweeper.run_once()
        await sweeper.close()
        assert scene.value("select count(*) from trunkline.file_removals") == 0
        assert files_of(store) == [artifact.storage_path]


async def test_a_job_whose_store_fails_names_the_store_and_what_to_do(
    scene: Scene, swift: S3Server
) -> None:
    @scene.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        await ctx.artifact("page.txt", b"content")

    with between(swift, lambda method, *_: 507 if method == "PUT" else None) as store:
        scene.app.store = store
        async with scene.working():
            job = await work.enqueue()
            with pytest.raises(JobFailed, match=r"The store has no space for .*page\.txt"):
                await job.wait()
        assert await job.artifacts() == []


@pytest.mark.parametrize(
    ("name", "content_type"), [("page.html", "text/html"), ("drawing.svg", "image/svg+xml")]
)
async def test_html_and_svg_of_a_handler_are_sent_as_attachments_by_a_bucket(
    scene: Scene, swift: S3Server, name: str, content_type: str
) -> None:

    @scene.app.task
    async def work(ctx: Context) -> None:
        await ctx.artifact(name, b"<script>alert(1)</script>")

    with between(swift, lambda *_: None) as store:
        scene.app.store = store
        async with scene.working():
            job = await work.enqueue()
            await job.wait()
        (artifact,) = await job.artifacts()
        answer = httpx2.get(await scene.app.artifacts.link(artifact))
        assert answer.headers["Content-Type"] == content_type
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'


@pytest.mark.parametrize(
    "name", ["", "a/b", "a\\b", "..", ". .", "a\nb", "a\0b", "a\u202eb", "x" * 201, "a\ud800"]
)
def test_a_name_is_refused_before_the_database_is_asked(name: str) -> None:
    with pytest.raises(InvalidArtifact):
        check_name(name)
