"""Calls that create and change jobs: enqueue, cancel, retry, discard, reprioritise."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

from trunkline.db.call import Call, Row, json_text, one, plain_text, rows_of, scalar
from trunkline.model import ChangedJob, Enqueued, EnqueuedBatch, TaskPolicy

__all__ = [
    "ENQUEUE_MANY",
    "acknowledge",
    "cancel",
    "discard",
    "enqueue",
    "enqueue_batch",
    "enqueue_document",
    "enqueue_many",
    "register_tasks",
    "reprioritise",
    "retry",
]

# The answer is one composite value: for a function in FROM the server stores the row and reads it
# back, which takes 10 to 40 µs.
ENQUEUE: Final[LiteralString] = (
    "select trunkline.enqueue(p_task => %s, p_payload => %s::text::jsonb)"
)
ENQUEUE_BATCH: Final[LiteralString] = (
    "select trunkline.enqueue_batch(p_task => %s, p_payloads => %s::text::jsonb)"
)
ENQUEUE_MANY: Final[LiteralString] = (
    "select job_id, created, state, run_at from trunkline.enqueue_many(p_jobs => %s::text::jsonb)"
)


def enqueue(task: str, payload: str) -> Call[Enqueued]:
    """Enqueue one job without options: 20 % less work than with a document."""
    return Call(ENQUEUE, (task, payload), _enqueued, binary=True)


def enqueue_batch(task: str, payloads: str) -> Call[EnqueuedBatch]:
    """Enqueue one job without options for each payload in a JSON array."""
    return Call(ENQUEUE_BATCH, (task, payloads), _enqueued_batch, binary=True)


# A composite value in binary format: the number of fields, then type, length and bytes of each.
# Here they are a uuid, a boolean, a text and a time in microseconds since 2000.
_UP_TO_TEXT: Final = struct.Struct("!12x16s8x?4xI")
_TIME: Final = struct.Struct("!8xq")
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


def _enqueued(rows: Sequence[Row]) -> Enqueued:
    value: bytes = rows[0][0]
    job, created, length = _UP_TO_TEXT.unpack_from(value)
    end = _UP_TO_TEXT.size + length
    state = value[_UP_TO_TEXT.size : end].decode()
    (microseconds,) = _TIME.unpack_from(value, end)
    return Enqueued(UUID(bytes=job), created, state, _EPOCH + timedelta(microseconds=microseconds))


# Its first field is an array of uuids: the length of the field, then each element after its length.
_UP_TO_IDS: Final = struct.Struct("!8xi12xi4x")
_ID: Final = struct.Struct("!4x16s")
_LENGTH: Final = struct.Struct("!4xI")


def _enqueued_batch(rows: Sequence[Row]) -> EnqueuedBatch:
    value: bytes = rows[0][0]
    length, _ = _UP_TO_IDS.unpack_from(value)
    end = 12 + length
    ids = [job_id for (job_id,) in _ID.iter_unpack(value[_UP_TO_IDS.size : end])]
    (state_length,) = _LENGTH.unpack_from(value, end)
    begin = end + _LENGTH.size
    (microseconds,) = _TIME.unpack_from(value, begin + state_length)
    return EnqueuedBatch(
        ids,
        value[begin : begin + state_length].decode(),
        _EPOCH + timedelta(microseconds=microseconds),
    )


def enqueue_document(document: str) -> Call[list[Enqueued]]:
    """Enqueue jobs from a JSON array of objects."""
    return Call(ENQUEUE_MANY, (document,), rows_of(Enqueued))


def enqueue_many(jobs: Iterable[Mapping[str, Any]]) -> Call[list[Enqueued]]:
    """Enqueue jobs in the engine's format; return one answer for each, in order."""
    return enqueue_document(json_text(list(jobs)))


def cancel(job: UUID, reason: str | None = None) -> Call[ChangedJob]:
    """Cancel a waiting job at once, or ask the worker of a running one to stop."""
    return Call(
        "select job_id, outcome, state from trunkline.cancel(p_job => %s::uuid, p_reason => %s)",
        (job, plain_text(reason)),
        one(ChangedJob),
    )


def retry(job: UUID) -> Call[Enqueued]:
    """Run a dead letter again, or a finished job as a new one."""
    return Call(
        "select job_id, created, state, run_at from trunkline.retry(p_job => %s::uuid)",
        (job,),
        one(Enqueued),
    )


def discard(job: UUID, reason: str | None = None) -> Call[ChangedJob]:
    """Delete a dead letter permanently."""
    return Call(
        "select job_id, outcome, state from trunkline.discard(p_job => %s::uuid, p_reason => %s)",
        (job, plain_text(reason)),
        one(ChangedJob),
    )


def acknowledge(job: UUID) -> Call[ChangedJob]:
    """Mark a dead letter as seen by a person."""
    return Call(
        "select job_id, outcome, state from trunkline.acknowledge(p_job => %s::uuid)",
        (job,),
        one(ChangedJob),
    )


def reprioritise(job: UUID, priority: int) -> Call[ChangedJob]:
    """Change the priority of a waiting job."""
    return Call(
        "select job_id, outcome, state"
        " from trunkline.reprioritise(p_job => %s::uuid, p_priority => %s::integer)",
        (job, priority),
        one(ChangedJob),
    )


def register_tasks(policies: Iterable[TaskPolicy]) -> Call[Any]:
    """Register tasks, or change the given parts of their policies."""
    document = json_text([_policy(policy) for policy in policies])
    return Call("select trunkline.register_tasks(p_tasks => %s::text::jsonb)", (document,), scalar)


def _policy(policy: TaskPolicy) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: getattr(policy, name) for name in TaskPolicy.__dataclass_fields__
    }
    for name in ("lease", "hard_limit"):
        if fields[name] is not None:
            fields[name] = f"{fields[name]:f} seconds"
    if policy.backoff is not None:
        fields["backoff"] = policy.backoff.as_json()
    return {name: value for name, value in fields.items() if value is not None}
