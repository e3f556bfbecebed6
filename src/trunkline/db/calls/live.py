"""Calls about jobs and workflows that somebody follows, and about emitted output."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from trunkline.db.call import Call, plain_text, rows_of, scalar
from trunkline.db.packed import Integers, Uuids
from trunkline.model import LiveJob, LiveWorkflow

__all__ = ["Chunk", "emit", "follow", "live_jobs", "live_workflows"]


class Chunk(NamedTuple):
    """A piece of output of an attempt."""

    job: UUID
    attempt: int
    number: int
    text: str


def follow(ids: Sequence[UUID]) -> Call[list[UUID]]:
    """Flag jobs and workflows as followed, up to 1,000; return those that are visible."""
    return Call("select trunkline.follow(p_ids => %s::uuid[])", (list(ids),), scalar)


def live_jobs(asked: Sequence[tuple[UUID, int, int]]) -> Call[list[LiveJob]]:
    """Return up to 100 jobs, each asked for with the offset of its output: attempt and number."""
    return Call(
        "select job_id, task, state, attempt, progress, phase, message, reason, tenant, run_at,"
        " finished_at, workflow_id, chunks, chunk_number, has_more from trunkline.live_jobs("
        "p_jobs => %s::uuid[], p_attempts => %s::integer[], p_numbers => %s::integer[])",
        ([job for job, _, _ in asked], [at for _, at, _ in asked], [n for _, _, n in asked]),
        rows_of(LiveJob),
    )


def live_workflows(ids: Sequence[UUID]) -> Call[list[LiveWorkflow]]:
    """Return up to 100 workflows."""
    return Call(
        "select workflow_id, name, state, generation, percent, phase, message, reason, tenant,"
        " jobs, ended_at from trunkline.live_workflows(p_workflows => %s::uuid[])",
        (list(ids),),
        rows_of(LiveWorkflow),
    )


def emit(worker: str, chunks: Sequence[Chunk]) -> Call[list[str]]:
    """Store output of running attempts; return ok, full or lost for each."""
    return Call(
        "select trunkline.emit(p_worker => %s, p_jobs => %b::uuid[], p_attempts => %b::integer[],"
        " p_numbers => %b::integer[], p_chunks => %s::text[])",
        (
            worker,
            Uuids.of([chunk.job for chunk in chunks]),
            Integers.of([chunk.attempt for chunk in chunks]),
            Integers.of([chunk.number for chunk in chunks]),
            [plain_text(chunk.text) for chunk in chunks],
        ),
        scalar,
    )
