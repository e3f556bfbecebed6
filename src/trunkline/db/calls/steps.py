"""Calls about steps of handlers, waits and events."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from trunkline.db.call import Call, one, plain_text, rows_of, scalar
from trunkline.db.packed import Integers, Uuids
from trunkline.model import (
    Enqueued,
    JobStep,
    NewStep,
    RecordedStep,
    SentEvent,
    StepResult,
    Verdict,
    WaitAnswer,
)

__all__ = [
    "begin_jobs",
    "begin_once",
    "begin_wait",
    "child_results",
    "job_steps",
    "record_once",
    "record_steps",
    "recorded_steps",
    "reset_step",
    "retry_fresh",
    "send_event",
    "suspend",
]


def record_steps(worker: str, steps: Sequence[NewStep]) -> Call[list[str]]:
    """Record steps of running attempts, all in one call; return ok, cancel or lost for each."""
    return Call(
        "select trunkline.record_steps(p_worker => %s, p_jobs => %b::uuid[],"
        " p_attempts => %b::integer[], p_places => %b::integer[], p_names => %s::text[],"
        " p_keys => %s::text[], p_hashes => %s::bigint[], p_results => %s::text[]::jsonb[])",
        (
            worker,
            Uuids.of([step.job for step in steps]),
            Integers.of([step.attempt for step in steps]),
            Integers.of([step.place for step in steps]),
            [step.name for step in steps],
            [step.key for step in steps],
            [step.arguments_hash for step in steps],
            [step.result for step in steps],
        ),
        scalar,
    )


def recorded_steps(worker: str, job: UUID, attempt: int) -> Call[list[RecordedStep]]:
    """Return the steps that earlier attempts of a job have recorded."""
    return Call(
        "select kind, name, key, place, arguments_hash, result::text, path, sha256"
        " from trunkline.recorded_steps(p_worker => %s, p_job => %s::uuid,"
        " p_attempt => %s::integer)",
        (worker, job, attempt),
        rows_of(RecordedStep),
    )


def begin_wait(
    worker: str,
    job: UUID,
    attempt: int,
    place: int,
    *,
    kind: str,
    name: str,
    key: str,
    address: str | None,
    timeout: float | None,
) -> Call[WaitAnswer]:
    """Begin or continue a sleep or a wait for an event."""
    return Call(
        "select outcome, until, result::text from trunkline.begin_wait(p_worker => %s,"
        " p_job => %s::uuid, p_attempt => %s::integer, p_place => %s::integer, p_kind => %s,"
        " p_name => %s, p_key => %s, p_address => %s, p_timeout => %s::interval)",
        (
            worker,
            job,
            attempt,
            place,
            kind,
            name,
            key,
            address,
            None if timeout is None else timedelta(seconds=timeout),
        ),
        one(WaitAnswer),
    )


def begin_jobs(
    worker: str, job: UUID, attempt: int, place: int, *, key: str, steps: str, detach: bool
) -> Call[WaitAnswer]:
    """Start jobs to wait for, or ask for those that an earlier attempt started."""
    return Call(
        "select outcome, until, result::text from trunkline.begin_jobs(p_worker => %s,"
        " p_job => %s::uuid, p_attempt => %s::integer, p_place => %s::integer, p_key => %s,"
        " p_steps => %s::text::jsonb, p_detach => %s::boolean)",
        (worker, job, attempt, place, key, steps, detach),
        one(WaitAnswer),
    )


def child_results(
    worker: str, job: UUID, attempt: int, *, workflow: UUID, step: str, first: int
) -> Call[list[StepResult]]:
    """Return a page of the results of jobs that a job has waited for."""
    return Call(
        "select item, result, path, sha256, bytes from trunkline.child_results(p_worker => %s,"
        " p_job => %s::uuid, p_attempt => %s::integer, p_workflow => %s::uuid, p_step => %s,"
        " p_from => %s::integer, p_limit => 1000)",
        (worker, job, attempt, workflow, step, first),
        rows_of(StepResult),
    )


def suspend(worker: str, jobs: Sequence[UUID], attempts: Sequence[int]) -> Call[list[Verdict]]:
    """Put jobs back until what they wait for is there."""
    return Call(
        "select job_id, attempt, verdict, state, run_at from trunkline.suspend("
        "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[])",
        (worker, list(jobs), list(attempts)),
        rows_of(Verdict),
    )


def begin_once(worker: str, job: UUID, attempt: int, place: int, name: str) -> Call[WaitAnswer]:
    """Ask for the result of a step that runs once for all jobs of a workflow."""
    return Call(
        "select outcome, until, result::text, path, sha256 from trunkline.begin_once("
        "p_worker => %s, p_job => %s::uuid, p_attempt => %s::integer, p_place => %s::integer,"
        " p_name => %s)",
        (worker, job, attempt, place, name),
        one(WaitAnswer),
    )


def record_once(worker: str, job: UUID, attempt: int, name: str, result: str | None) -> Call[str]:
    """Record that result for all jobs of the workflow; return ok, cancel or lost."""
    return Call(
        "select trunkline.record_once(p_worker => %s, p_job => %s::uuid,"
        " p_attempt => %s::integer, p_name => %s, p_result => %s::text::jsonb)",
        (worker, job, attempt, name, result),
        scalar,
    )


def send_event(
    name: str,
    payload: str,
    *,
    job: UUID | None = None,
    key: str | None = None,
    event_id: str | None = None,
    tenant: str | None = None,
) -> Call[SentEvent]:
    """Send an event to a job or to a key; `payload` is JSON text."""
    return Call(
        "select outcome, resumed, sent_at from trunkline.send_event(p_name => %s,"
        " p_payload => %s::text::jsonb, p_job => %s::uuid, p_key => %s, p_event_id => %s,"
        " p_tenant => %s)",
        (name, payload, job, key, event_id, tenant),
        one(SentEvent),
    )


def job_steps(job: UUID) -> Call[list[JobStep]]:
    """Return the steps of a job, recorded ones and what it waits for."""
    return Call(
        "select place, kind, name, key, state, attempt, recorded_at, until, result, bytes"
        " from trunkline.job_steps(p_job => %s::uuid)",
        (job,),
        rows_of(JobStep),
    )


def reset_step(job: UUID, name: str, key: str | None, reason: str | None) -> Call[int]:
    """Delete recorded steps of a job, so that the next attempt runs them again."""
    return Call(
        "select trunkline.reset_step(p_job => %s::uuid, p_name => %s, p_key => %s, p_reason => %s)",
        (job, name, key, plain_text(reason)),
        scalar,
    )


def retry_fresh(job: UUID) -> Call[Enqueued]:
    """Run a dead letter again without its recorded steps."""
    return Call(
        "select job_id, created, state, run_at from trunkline.retry_fresh(p_job => %s::uuid)",
        (job,),
        one(Enqueued),
    )
