"""The source's functions under its names, for applications and for workers of their own.

Each takes a connection of psycopg whose login has the rights: `trunkline_producer` for requests,
`trunkline_worker` for work. `process_export_queue` is a whole worker in one call: it claims until
nothing is due or three exports run.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, LiteralString, NamedTuple, Protocol
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from trunkline_profiles.exports.handlers.options import read_options
from trunkline_profiles.exports.handlers.pages import finished
from trunkline_profiles.exports.handlers.problems import BadDocument
from trunkline_profiles.exports.handlers.renderers import Renderer
from trunkline_profiles.exports.handlers.resume import read_resume
from trunkline_profiles.exports.refusals import InvalidAttempt

__all__ = [
    "Uploaded",
    "calculate_retry_delay",
    "cancel_job",
    "check_storage_quota",
    "complete_job",
    "create_export_job",
    "fail_job",
    "fetch_next_export_job",
    "get_job_status",
    "process_export_queue",
    "reset_stuck_jobs",
    "update_job_progress",
    "upload_export",
]

Row = dict[str, Any]
_BASE: Final = 60
_CAP: Final = 3600
_JITTER: Final = 0.2
_LINK_SECONDS: Final = 3600
_PDF: Final = "application/pdf"
# Seconds between two claims.
_PAUSE: Final = 0.1


class Store(Protocol):
    """The part of a store that a worker needs; `trunkline.artifacts` has stores."""

    def put(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        content_type: str | None = None,
        filename: str | None = None,
    ) -> Any:
        """Write a file."""
        ...

    def sign(
        self,
        path: str,
        *,
        expires_in: int = 3600,
        content_type: str | None = None,
        filename: str | None = None,
    ) -> str:
        """Return a link that works without signing in, until it expires."""
        ...


class Uploaded(NamedTuple):
    """A file that was uploaded, and not published yet."""

    path: str
    url: str
    bytes: int
    sha256: str


def calculate_retry_delay(attempt: int, draw: Callable[[], float] = random.random) -> int:
    """The whole seconds after a failed attempt until the next one: 60, 120 … 3600, ± 20 %."""
    if attempt < 1:
        raise InvalidAttempt(f"there is no attempt {attempt}", hint=InvalidAttempt.hint)
    delay: float = min(_BASE * 2.0 ** min(attempt - 1, 30), _CAP)
    return round(min(delay * (1 - _JITTER + 2 * _JITTER * draw()), _CAP))


def create_export_job(
    connection: psycopg.Connection[Any],
    user: UUID,
    document: UUID,
    options: Mapping[str, Any] | None = None,
) -> Row:
    """Queue an export; return its row, or that of the live export that is the same."""
    made = _rows(
        connection,
        "select job_id from exports.create_export_job(%s, %s, %s)",
        *(document, Jsonb(dict(options or {})), user),
    )
    job = made[0]["job_id"]
    return _rows(connection, "select * from exports.export_jobs where id = %s", job)[0]


def get_job_status(connection: psycopg.Connection[Any], user: UUID, job: UUID) -> Row | None:
    """An export as its user sees it; None if there is none, or if it is another user's."""
    with connection.transaction():
        connection.execute(b"select set_config('trunkline.tenant', %s, true)", (str(user),))
        found = _rows(connection, "select exports.get_job_status(%s) as job", job)
    state: Row | None = found[0]["job"]
    return state


def cancel_job(connection: psycopg.Connection[Any], user: UUID, job: UUID) -> str:
    """Cancel an export of a user: ``cancelled``, or ``cancelling`` while it runs."""
    with connection.transaction():
        connection.execute(b"select set_config('trunkline.tenant', %s, true)", (str(user),))
        return str(_rows(connection, "select exports.cancel_job(%s) as status", job)[0]["status"])


def check_storage_quota(connection: psycopg.Connection[Any], user: UUID) -> Row:
    """Whether another export fits: ``allowed``, ``usedMB`` and ``limitMB``."""
    return _rows(connection, "select * from exports.check_storage_quota(%s)", user)[0]


def fetch_next_export_job(
    connection: psycopg.Connection[Any], worker: str, user: UUID | None = None
) -> Row | None:
    """Claim the next export, of one user if named; None if none is due or three run."""
    found = _rows(connection, "select * from exports.fetch_next_export_job(%s, %s)", user, worker)
    return found[0] if found else None


def update_job_progress(
    connection: psycopg.Connection[Any], worker: str, job: UUID, percent: int
) -> bool:
    """Record progress; False means that the export is no longer yours: stop."""
    query: LiteralString = "select exports.update_job_progress(%s, %s, %s) as ok"
    return bool(_rows(connection, query, job, percent, worker)[0]["ok"])


def upload_export(
    connection: psycopg.Connection[Any], store: Store, worker: str, job: UUID, content: bytes
) -> Uploaded:
    """Upload the file of a claimed export; `complete_job` publishes it."""
    (row,) = _rows(
        connection, "select exports.prepare_upload(%s, %s, %s) as path", job, worker, len(content)
    )
    path: str = row["path"]
    name = path.rpartition("/")[2]
    store.put(path, [content], content_type=_PDF, filename=name)
    url = store.sign(path, expires_in=_LINK_SECONDS, content_type=_PDF, filename=name)
    return Uploaded(path, url, len(content), hashlib.sha256(content).hexdigest())


def complete_job(
    connection: psycopg.Connection[Any],
    worker: str,
    job: UUID,
    uploaded: Uploaded,
    page_count: int,
    *,
    version: int | None = None,
) -> bool:
    """Complete an export with its file; False if it was cancelled or is no longer yours."""
    arguments = (job, uploaded.path, uploaded.bytes, page_count, worker, uploaded.sha256, version)
    query: LiteralString = (
        "select exports.complete_job(%s, %s, %s, %s, %s, %s, p_document_version => %s) as ok"
    )
    return bool(_rows(connection, query, *arguments)[0]["ok"])


def fail_job(
    connection: psycopg.Connection[Any],
    worker: str,
    job: UUID,
    error: str,
    *,
    permanent: bool = False,
) -> str | None:
    """End an attempt as failed: ``pending`` for a retry, ``failed``, or None if not yours."""
    query: LiteralString = "select exports.fail_job(%s, %s, %s, p_is_permanent => %s) as status"
    status: str | None = _rows(connection, query, job, error, worker, permanent)[0]["status"]
    return status


def reset_stuck_jobs(connection: psycopg.Connection[Any]) -> int:
    """Take back exports whose workers are silent; return how many."""
    return int(_rows(connection, "select exports.reset_stuck_jobs() as n")[0]["n"])


def process_export_queue(
    connection: psycopg.Connection[Any],
    store: Store,
    renderer: Renderer,
    worker: str,
    *,
    pause: Callable[[float], Any] = time.sleep,
) -> int:
    """Claim and carry out exports until none is due or the limit is reached; return how many."""
    done = 0
    while (row := fetch_next_export_job(connection, worker)) is not None:
        _carry_out(connection, store, renderer, worker, row["id"])
        done += 1
        pause(_PAUSE)
    return done


def _carry_out(
    connection: psycopg.Connection[Any], store: Store, renderer: Renderer, worker: str, job: UUID
) -> None:
    """Run the steps of one export; every problem ends its attempt, never this worker."""
    try:
        if not update_job_progress(connection, worker, job, 25):
            return
        (found,) = _rows(connection, "select * from exports.export_input(%s, %s)", job, worker)
        if found["problem"] is not None:
            fail_job(connection, worker, job, f"{found['problem']}:", permanent=True)
            return
        if not update_job_progress(connection, worker, job, 50):
            return
        resume = read_resume(found["title"], found["author"], found["data"])
        if not update_job_progress(connection, worker, job, 75):
            return
        content = renderer.render(resume, read_options(found["options"]), lambda: False)
        pages = finished(content, title=found["title"], author=found["author"])
        if not update_job_progress(connection, worker, job, 90):
            return
        uploaded = upload_export(connection, store, worker, job, pages.content)
        complete_job(connection, worker, job, uploaded, pages.number, version=found["version"])
    except BadDocument:
        fail_job(connection, worker, job, "invalid_options:", permanent=True)
    except Exception as error:  # noqa: BLE001 - the attempt has failed, whatever it was
        fail_job(connection, worker, job, type(error).__name__)


def _rows(connection: psycopg.Connection[Any], query: LiteralString, *parameters: Any) -> list[Row]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, parameters or None).fetchall()
