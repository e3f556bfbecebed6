"""The tasks of the profile: its task types as jobs of an application.

A task reads what earlier tasks have stored, does its work, uploads files and returns metadata. The
engine publishes the files when it completes the task. Time limits, attempts and limits are rows in
the database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple

import msgspec
import psycopg

from trunkline import Context, Discard, SyncContext, Task, Trunkline
from trunkline.errors import StaleAttempt
from trunkline_profiles.studio.handlers import charts
from trunkline_profiles.studio.handlers.adapters import Adapters
from trunkline_profiles.studio.handlers.chapter import Book, Chapter, StoredText, decode, encode
from trunkline_profiles.studio.handlers.charts import Person
from trunkline_profiles.studio.handlers.files import Files, Readable
from trunkline_profiles.studio.handlers.mp3 import measure
from trunkline_profiles.studio.handlers.problems import BadOrder
from trunkline_profiles.studio.handlers.retries import call_again
from trunkline_profiles.studio.handlers.speech import Speaker
from trunkline_profiles.studio.handlers.text import LIMIT, Assignment, Writer

__all__ = ["FINAL_QUEUE", "QUEUE", "TYPES", "Services", "StoredFile", "build", "unserved"]

QUEUE: Final = "studio"
FINAL_QUEUE: Final = "studio-final"
TYPES: Final = ("text_generation", "pdf_generation", "audio_generation", "finalize_job")

_log = logging.getLogger("trunkline_profiles.studio")
_FILES: Final = b"""
select *
from studio.order_files(p_task => %(job)s, p_attempt => %(attempt)s, p_worker => %(worker)s)
"""
# The SQLSTATE of studio.refuse('stale_task').
_STALE: Final = "TA007"


class StoredFile(msgspec.Struct, frozen=True):
    """The result of a task: what was published. The content is in the store only."""

    name: str
    path: str
    sha256: str
    bytes: int
    duration: float | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """The services of the handlers; a worker does not serve types whose service is missing."""

    adapters: Adapters
    open_store: Callable[[], Readable]
    # Passed to the quick retries of calls to the model.
    sleep: Callable[[float], Any] | None = field(default=None)


class _File(NamedTuple):
    """A file of the order that is finalised."""

    document: int
    artifact_type: str
    name: str
    path: str
    sha256: str
    bytes: int
    duration: float | None


class _Handlers:
    """The handlers, with their services."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._files = Files(services.open_store)

    async def text_generation(
        self,
        ctx: Context,
        document: int,
        title: str,
        *,
        person1: Person,
        person2: Person,
        systems: list[str],
    ) -> StoredText:
        """Write the text of one document with the model."""
        writer: Writer = _given(self._services.adapters.writer)
        with _judged():
            # Once per order: other texts wait for the first one without holding a slot.
            data = await ctx.once("base_data", charts.base_data, person1, person2, systems)
            await ctx.progress(message=title)
            client = ctx.http_client(limit=LIMIT, tokens=writer.tokens)
            assignment = Assignment(title, charts.as_text(data))
            options: Any = {} if self._services.sleep is None else {"sleep": self._services.sleep}
            # The same key for all attempts: a retry after a lost answer is not paid for twice.
            chapter = await call_again(
                lambda: writer.write(client, assignment, str(ctx.job_id)), **options
            )
        file = await ctx.artifact(f"chapter{document}.json", encode(chapter), kind="json")
        return StoredText(file.name, file.storage_path, file.sha256, file.bytes, chapter.words)

    def pdf_generation(
        self, ctx: SyncContext, document: int, title: str, day: date, text: StoredText
    ) -> StoredFile:
        """Set the text of one document into a PDF/A."""
        renderer = _given(self._services.adapters.renderer)
        with _judged():
            chapter = self._text(text)
            pages = renderer.render(Book(title, _AUTHOR, day, [chapter]))
        file = ctx.artifact(f"chapter{document}.pdf", pages, kind="pdf")
        return StoredFile(file.name, file.storage_path, file.sha256, file.bytes)

    def audio_generation(
        self, ctx: SyncContext, document: int, title: str, text: StoredText
    ) -> StoredFile:
        """Read the text of one document aloud, into an MP3."""
        ctx.progress(message=title)
        speaker: Speaker = _given(self._services.adapters.speaker)
        with _judged():
            sound = speaker.speak(self._text(text), lambda: ctx.cancelled)
            seconds = round(measure(sound).duration, 3)
        file = ctx.artifact(f"chapter{document}.mp3", sound, kind="audio_mp3", duration=seconds)
        ctx.progress(phase="stored")
        return StoredFile(file.name, file.storage_path, file.sha256, file.bytes, seconds)

    def finalize_job(self, ctx: SyncContext, title: str, author: str, day: date) -> dict[str, Any]:
        """Store metadata for each document, and all texts as one JSON and one PDF.

        Each part is a step, so that a later attempt publishes what an earlier one has made, and the
        bar counts it.
        """
        renderer = _given(self._services.adapters.renderer)
        with _judged():
            files = _order_files(ctx)
            # In the order of the documents.
            chapters = {
                file.document: self._decoded(file) for file in files if file.artifact_type == "json"
            }
            ordered = list(chapters.values())

            def store_metadata() -> int:
                for document, chapter in chapters.items():
                    facts = _metadata(document, chapter, files)
                    name = f"chapter{document}_metadata.json"
                    ctx.artifact(name, msgspec.json.encode(facts, order="sorted"), kind="json")
                return len(chapters)

            def store_pdf() -> str:
                pages = renderer.render(Book(title, author, day, ordered))
                return ctx.artifact("full_nuclear.pdf", pages, kind="pdf").sha256

            def store_json() -> str:
                combined = {"title": title, "author": author, "day": day, "chapters": ordered}
                content = msgspec.json.encode(combined)
                return ctx.artifact("full_nuclear.json", content, kind="json").sha256

            documents = ctx.step("metadata", store_metadata)
            ctx.step("pdf", store_pdf)
            ctx.step("json", store_json)
        return {"documents": documents, "words": sum(chapter.words for chapter in ordered)}

    def _text(self, text: StoredText) -> Chapter:
        return decode(self._files.content(text.path, text.sha256))

    def _decoded(self, file: _File) -> Chapter:
        return decode(self._files.content(file.path, file.sha256))


def build(app: Trunkline, services: Services) -> dict[str, Task[..., Any]]:
    """Declare the tasks that this host can serve on an application; return them by name."""
    missing = unserved(services.adapters)
    for name, reason in missing.items():
        _log.warning("%s is not served by this worker: %s", name, reason)
    handlers = _Handlers(services)
    for name in TYPES:
        if name not in missing:
            queue = FINAL_QUEUE if name == "finalize_job" else QUEUE
            app.task(queue=queue, profile="studio")(getattr(handlers, name))
    return {name: app.tasks[name] for name in TYPES if name not in missing}


def unserved(found: Adapters) -> dict[str, str]:
    """Task types that must not be claimed here, with the reason."""
    return {name: found.missing[part] for name, part in _NEEDS.items() if part in found.missing}


_NEEDS: Final = {
    "text_generation": "writer",
    "pdf_generation": "renderer",
    "audio_generation": "speaker",
    "finalize_job": "renderer",
}
_AUTHOR: Final = "Trunkline studio"


@contextmanager
def _judged() -> Iterator[None]:
    """A permanent problem makes the task fail at once; others are retried."""
    try:
        yield
    except BadOrder as error:
        raise Discard(str(error)) from error


def _given(adapter: Any) -> Any:
    if adapter is None:
        raise LookupError("the adapter of this task is missing: see trunkline_profiles.studio.app")
    return adapter


def _order_files(ctx: SyncContext) -> list[_File]:
    attempt = {"job": ctx.job_id, "attempt": ctx.attempt, "worker": ctx.worker}
    rows: list[Any] = []
    with suppress(psycopg.Rollback), ctx.transaction() as connection:
        try:
            rows = connection.execute(_FILES, attempt).fetchall()
        except psycopg.Error as error:
            if error.sqlstate != _STALE:
                raise
            raise StaleAttempt(
                "the attempt is no longer yours", hint="Stop the work and discard its result."
            ) from error
        # Nothing was written, and the task must not be completed here.
        raise psycopg.Rollback
    return [_File(*row) for row in rows]


def _metadata(document: int, chapter: Chapter, files: list[_File]) -> dict[str, Any]:
    return {
        "document": document,
        "title": chapter.title,
        "words": chapter.words,
        "files": [
            {
                "type": file.artifact_type,
                "name": file.name,
                "bytes": file.bytes,
                "sha256": file.sha256,
                "duration": file.duration,
            }
            for file in files
            if file.document == document
        ],
    }
