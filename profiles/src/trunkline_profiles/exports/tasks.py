"""The tasks of the profile: an export, and the cleanup of expired ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from trunkline import Cancel, Discard, SyncContext, Task, Trunkline
from trunkline.errors import StaleAttempt
from trunkline_profiles.exports.handlers.memory import report
from trunkline_profiles.exports.handlers.options import read_options
from trunkline_profiles.exports.handlers.pages import Pages, finished
from trunkline_profiles.exports.handlers.problems import BadDocument, RenderStopped, RenderTimeout
from trunkline_profiles.exports.handlers.renderers import Renderer
from trunkline_profiles.exports.handlers.resume import read_resume
from trunkline_profiles.exports.refusals import StaleJob, StorageFull, UnknownDocument

__all__ = ["CLEANUP_QUEUE", "QUEUE", "WHOLE_JOB", "Services", "build"]

QUEUE: Final = "exports"
CLEANUP_QUEUE: Final = "exports-cleanup"
# Seconds of a whole export.
WHOLE_JOB: Final = 60.0

_log = logging.getLogger("trunkline_profiles.exports")
_INPUT: Final = b"""
select i.title, i.version, i.data, i.author, i.options, i.file_name, i.problem
from exports.export_input(p_job_id => %s, p_worker_id => %s, p_attempt => %s) as i
"""
_RECORD: Final = b"""
select exports.record_export(
  p_job_id => %s, p_worker_id => %s, p_attempt => %s, p_artifact => %s, p_path => %s, p_bytes => %s,
  p_pages => %s, p_version => %s
)
"""


@dataclass(frozen=True, slots=True)
class Services:
    """The services of the handlers."""

    renderer: Renderer
    whole_job: float = WHOLE_JOB


class _Input(NamedTuple):
    title: str
    version: int
    data: Mapping[str, Any]
    author: str
    options: Mapping[str, Any]
    file_name: str
    problem: str | None


class _Handlers:
    """The handlers, with their services."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def export_document(self, ctx: SyncContext, document_id: UUID) -> dict[str, Any]:
        """Render a document, store the file, and complete with its history in one transaction.

        The payload names the document for operators; the database reads it by the job.
        """
        del document_id
        started = time.monotonic()
        status = "failed"
        try:
            result = self._export(ctx, started + self._services.whole_job)
            status = "completed"
        except (Cancel, RenderStopped) as error:
            status = "cancelled"
            raise Cancel("cancelled by the user") from error
        finally:
            # Never what a document says, and no message of a library, which may quote it.
            _log.info(
                "export %s of user %s %s after %.2f s",
                ctx.job_id,
                ctx.tenant,
                status,
                time.monotonic() - started,
            )
            report(getattr(self._services.renderer, "processes", ()))
        return result

    def cleanup_expired_exports(self, ctx: SyncContext, deleted: int = 0) -> dict[str, int]:
        """Do one page of the cleanup; the database enqueues the next one."""
        with ctx.transaction() as connection:
            row = connection.execute(b"select exports.continue_cleanup(%s)", (deleted,)).fetchone()
            ctx.result = {"deleted": row[0]}
        found: dict[str, int] = ctx.result
        return found

    def _export(self, ctx: SyncContext, deadline: float) -> dict[str, Any]:
        ctx.progress(25, "Fetching the document")
        found = _input(ctx)
        if found.problem is not None:
            raise Discard(f"{found.problem}: the export cannot succeed")
        ctx.progress(50, "Rendering the template")
        try:
            resume = read_resume(found.title, found.author, found.data)
        except BadDocument as error:
            raise Discard(f"invalid_options: {error}") from error
        options = read_options(found.options)
        _check(deadline)
        ctx.progress(75, "Generating the PDF")
        content = self._services.renderer.render(resume, options, lambda: ctx.cancelled)
        pages = finished(content, title=found.title, author=found.author)
        _check(deadline)
        ctx.progress(90, "Uploading")
        return _store(ctx, found, pages)


def build(app: Trunkline, services: Services) -> dict[str, Task[..., Any]]:
    """Declare the tasks on an application; return them by name."""
    handlers = _Handlers(services)
    app.task(queue=QUEUE, profile="exports")(handlers.export_document)
    app.task(queue=CLEANUP_QUEUE, profile="exports")(handlers.cleanup_expired_exports)
    return {name: app.tasks[name] for name in ("export_document", "cleanup_expired_exports")}


def _store(ctx: SyncContext, found: _Input, pages: Pages) -> dict[str, Any]:
    file = ctx.artifact(
        found.file_name, pages.content, kind="export", content_type="application/pdf"
    )
    arguments = (
        *(ctx.job_id, ctx.worker, ctx.attempt, file.id, file.storage_path),
        *(file.bytes, pages.number, found.version),
    )
    with ctx.transaction() as connection:
        try:
            row = connection.execute(_RECORD, arguments).fetchone()
        except psycopg.Error as error:
            raise _judged(error) from error
        if row[0] is None:
            raise Cancel("cancelled by the user")
        ctx.result = {"history_id": str(row[0]), "bytes": file.bytes, "pages": pages.number}
    result: dict[str, Any] = ctx.result
    return result


def _input(ctx: SyncContext) -> _Input:
    rows: list[Any] = []
    with suppress(psycopg.Rollback), ctx.transaction() as connection:
        try:
            rows = connection.execute(_INPUT, (ctx.job_id, ctx.worker, ctx.attempt)).fetchall()
        except psycopg.Error as error:
            raise _judged(error) from error
        # Nothing was written, and the job must not be completed here.
        raise psycopg.Rollback
    return _Input(*rows[0])


def _judged(error: psycopg.Error) -> Exception:
    """The way in which a refusal of the database ends the attempt."""
    if error.sqlstate == StorageFull.sqlstate:
        return Discard("storage_full: the storage of the user is full")
    if error.sqlstate == UnknownDocument.sqlstate:
        return Discard("document_missing: it was deleted")
    if error.sqlstate == StaleJob.sqlstate:
        return StaleAttempt(
            "the attempt is no longer yours", hint="Stop the work and discard its result."
        )
    return error


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RenderTimeout("the export took too long")
