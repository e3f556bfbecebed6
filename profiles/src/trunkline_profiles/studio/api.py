"""The source's HTTP API as functions: what a route reads, decides and returns, without HTTP.

Each call acts for one user, by narrowing its transaction to that tenant. Answers are read from the
database only.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from trunkline import errors
from trunkline.errors import FileHeadersUnsafe, Refusal
from trunkline_profiles.studio.refusals import ERRORS, UnknownJob

__all__ = [
    "LINK_SECONDS",
    "Answer",
    "Signer",
    "cancel_job",
    "follow",
    "read_job",
    "start_job",
    "tag_of",
]

LINK_SECONDS: Final = 3600
# The tag of an answer with links changes this often, so a client never keeps links that have
# expired: those that it holds are valid for at least half an hour more.
_TAG_SECONDS: Final = 1800
# Seconds after which a client may repeat a request that was refused for now.
_RETRY_AFTER: Final = 30
# Seconds between two polls of a client: the first and the longest.
_POLL: Final = (2.0, 10.0)
_FACTOR: Final = 1.5
_FINAL: Final = frozenset({"complete", "failed", "cancelled"})
# By SQLSTATE: those of the engine, and those of the profile.
_REFUSALS: Final[Mapping[str, type[Refusal]]] = {
    found.sqlstate: found
    for found in (*vars(errors).values(), *ERRORS)
    if isinstance(found, type) and issubclass(found, Refusal) and found.sqlstate
}


class Signer(Protocol):
    """The part of a store that makes links."""

    def sign(
        self, path: str, *, expires_in: int = LINK_SECONDS, content_type: str, filename: str
    ) -> str:
        """Return a link that works without signing in, until it expires."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a route would return."""

    status: int
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def start_job(
    connection: psycopg.Connection[Any],
    user: UUID,
    body: Mapping[str, Any],
    idempotency_key: str | None = None,
) -> Answer:
    """POST /api/jobs/start. A refusal has the stable code of its exception, for example 409 with
    ``idempotency_mismatch`` if the key belongs to another order; see `refusals`.
    """
    query = b"select job_id, status from studio.start_job(%s, %s, %s)"
    arguments = (body.get("type"), Jsonb(body.get("params")), idempotency_key)
    try:
        with _as_user(connection, user):
            row = connection.execute(query, arguments).fetchone()
    except psycopg.Error as error:
        return _refused(error)
    assert row is not None  # noqa: S101 - a function returns a row
    return Answer(202, {"id": str(row[0]), "status": row[1]})


def read_job(
    connection: psycopg.Connection[Any],
    store: Signer,
    user: UUID,
    job: UUID,
    *,
    if_none_match: str | None = None,
    clock: Callable[[], float] = time.time,
) -> Answer:
    """GET /api/jobs/:id. Links are signed now.

    The tag is that of the unsigned answer. With links it also changes every half hour, before those
    that a client keeps expire.
    """
    with _as_user(connection, user):
        row = connection.execute(b"select studio.read_job(%s)", (job,)).fetchone()
    found: dict[str, Any] | None = None if row is None else row[0]
    if found is None:
        return Answer(404)
    headers = {"ETag": tag_of(found, clock())}
    if if_none_match == headers["ETag"]:
        return Answer(304, headers=headers)
    return Answer(200, _public(found, store), headers)


def cancel_job(connection: psycopg.Connection[Any], user: UUID, job: UUID) -> Answer:
    """POST /api/jobs/:id/cancel."""
    try:
        with _as_user(connection, user):
            row = connection.execute(b"select studio.cancel_job(%s)", (job,)).fetchone()
    except psycopg.Error as error:
        return _refused(error)
    assert row is not None  # noqa: S101 - a function returns a row
    return Answer(202, {"id": str(job), "outcome": row[0]})


def follow(
    read: Callable[[str | None], Answer],
    pause: Callable[[float], Any],
    *,
    draw: Callable[[], float] = random.random,
) -> Iterator[Mapping[str, Any]]:
    """Yield the job whenever it has changed, until it has ended.

    Polls after 2 seconds, and after up to 10 while nothing changes. A stream of events sends what
    this yields; so does a client that polls.
    """
    tag: str | None = None
    shortest, longest = _POLL
    seconds = shortest
    while True:
        answer = read(tag)
        if answer.status not in {200, 304}:
            return
        if answer.body is not None:
            tag = answer.headers["ETag"]
            seconds = shortest
            yield answer.body
            if answer.body["status"] in _FINAL:
                return
        pause(seconds * (0.9 + 0.2 * draw()))
        seconds = min(longest, seconds * _FACTOR)


def _refused(error: psycopg.Error) -> Answer:
    """Return what a route answers to a refusal; raise the error again if it is none."""
    found = _REFUSALS.get(error.sqlstate or "")
    if found is None:
        raise error
    refusal = found(error.diag.message_primary or str(error), hint=error.diag.message_hint)
    if isinstance(refusal, UnknownJob):
        return Answer(404)
    body = {"error": refusal.message, "hint": refusal.hint, "code": refusal.code}
    headers = {"Retry-After": str(_RETRY_AFTER)} if refusal.retryable else {}
    return Answer(refusal.http_status, body, headers)


def tag_of(found: Mapping[str, Any], now: float) -> str:
    """The tag of a job as `read_job` of the database returns it."""
    signed = any("path" in one for one in found["artifacts"])
    period = int(now // _TAG_SECONDS) if signed else None
    content = json.dumps([found, period], sort_keys=True).encode()
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _public(found: Mapping[str, Any], store: Signer) -> dict[str, Any]:
    artifacts = [
        {
            "type": one["type"],
            "name": one["name"],
            "url": _link(one, store),
            "duration": one.get("duration"),
        }
        if "path" in one
        # The older system made its links itself.
        else one
        for one in found["artifacts"]
    ]
    return {**found, "artifacts": artifacts}


def _link(file: Mapping[str, Any], store: Signer) -> str | None:
    """Return a link, or none if the file was uploaded in a way that is not safe for browsers."""
    try:
        return store.sign(
            file["path"],
            expires_in=LINK_SECONDS,
            content_type=file["contentType"],
            filename=file["name"],
        )
    except FileHeadersUnsafe:
        return None


@contextmanager
def _as_user(connection: psycopg.Connection[Any], user: UUID) -> Iterator[None]:
    with connection.transaction():
        connection.execute(b"select set_config('trunkline.tenant', %s, true)", (str(user),))
        yield
