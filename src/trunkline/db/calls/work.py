"""Calls of workers. Calls about jobs pass the attempt, which is the fencing token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from trunkline.db.call import Call, Row, json_text, nothing, one, plain_text, rows_of, scalar
from trunkline.db.packed import Integers, Uuids
from trunkline.model import ClaimedJob, StepResult, Verdict, WorkflowPlace
from trunkline.schema.contract import SchemaVersion

__all__ = [
    "CLAIM",
    "Claimed",
    "acknowledge_cancel",
    "claim",
    "complete",
    "dependency_results",
    "fail",
    "hand_over",
    "heartbeat",
    "job_workflow",
    "progress",
    "pulse",
    "pulse_interval",
    "register_worker",
    "release",
    "release_forgotten",
    "sleep",
    "snooze",
    "stop_worker",
    "wake",
]

# Only the columns that running a job needs, in the order of ClaimedJob, then the position. With
# binary rows, and a `complete` that returns only exceptions, psycopg is as fast as asyncpg: 7 µs of
# client time per job at batches of 500. Text rows and all columns take 16. See bench/drivers.
CLAIM: Final[LiteralString] = """
select job_id, attempt, task, payload::text, queue, tenant, correlation_id, tags, failures,
  max_attempts, claimed_at, lease_expires_at, hard_deadline, last_error, start_by, workflow_id,
  position::text
from trunkline.claim(
  p_worker => %s, p_queues => %s::text[], p_limit => %s::integer, p_tasks => %s::text[],
  p_position => %s::text::jsonb, p_limited => %s::integer
)
"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Claimed jobs, and the position from which the next claim continues."""

    jobs: list[ClaimedJob]
    position: str | None


def claim(
    worker: str,
    queues: Sequence[str] | None,
    limit: int,
    tasks: Sequence[str] | None,
    position: str | None,
    *,
    limited: int | None = None,
) -> Call[Claimed]:
    """Claim up to `limit` jobs in order of priority, each with a lease and a new attempt number.
    At most `limited` of them have limits: jobs that cannot start at once are charged in vain.
    """
    parameters = (worker, _list(queues), limit, _list(tasks), position, limited)
    return Call(CLAIM, parameters, _claimed, binary=True)


def _claimed(rows: Sequence[Row]) -> Claimed:
    position: str | None = rows[-1][-1] if rows else None
    return Claimed([ClaimedJob._make(row[:-1]) for row in rows if row[0] is not None], position)


def heartbeat(worker: str, jobs: Sequence[UUID], attempts: Sequence[int]) -> Call[list[Verdict]]:
    """Extend the leases of running jobs, all in one call."""
    return Call(
        "select job_id, attempt, verdict, state, run_at from trunkline.heartbeat("
        "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[])",
        (worker, list(jobs), list(attempts)),
        rows_of(Verdict),
    )


def complete(
    worker: str,
    jobs: Sequence[UUID],
    attempts: Sequence[int],
    results: Sequence[str | None] | None = None,
    *,
    strict: bool = False,
) -> Call[list[Verdict]]:
    """End attempts with their results (JSON text); returns only the verdicts other than ok.

    Those are attempts that this worker no longer owns, or that ended as cancelled because a
    heartbeat or progress call had returned cancel. With strict, the whole call is refused instead.
    """
    return Call(
        "select job_id, attempt, verdict, state, run_at from trunkline.complete("
        "p_worker => %s, p_jobs => %b::uuid[], p_attempts => %b::integer[],"
        " p_results => %s::text[]::jsonb[], p_strict => %s::boolean) where verdict <> 'ok'",
        (worker, Uuids.of(jobs), Integers.of(attempts), _list(results), strict),
        rows_of(Verdict),
        binary=True,
    )


def fail(
    worker: str,
    jobs: Sequence[UUID],
    attempts: Sequence[int],
    *,
    errors: Sequence[Mapping[str, Any] | None],
    retryable: Sequence[bool],
    delays: Sequence[float | None],
) -> Call[list[Verdict]]:
    """End attempts as failed. The task's policy decides whether the jobs are retried or dead."""
    return Call(
        "select job_id, attempt, verdict, state, run_at from trunkline.fail("
        "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[],"
        " p_errors => %s::text[]::jsonb[], p_retryable => %s::boolean[],"
        " p_delays => %s::interval[])",
        (
            worker,
            list(jobs),
            list(attempts),
            [None if error is None else json_text(error) for error in errors],
            list(retryable),
            [None if delay is None else timedelta(seconds=delay) for delay in delays],
        ),
        rows_of(Verdict),
    )


def hand_over(
    worker: str,
    jobs: Sequence[UUID],
    attempts: Sequence[int],
    errors: Sequence[Mapping[str, Any] | None],
) -> Call[list[Verdict]]:
    """End attempts whose payload lacks a field, or has an unknown one, for this worker's code."""
    return Call(
        "select job_id, attempt, verdict, state, run_at, other_worker from trunkline.hand_over("
        "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[],"
        " p_errors => %s::text[]::jsonb[])",
        (
            worker,
            list(jobs),
            list(attempts),
            [None if error is None else json_text(error) for error in errors],
        ),
        rows_of(Verdict),
    )


def snooze(
    worker: str,
    jobs: Sequence[UUID],
    attempts: Sequence[int],
    delays: Sequence[float | None],
    reason: str | None = None,
) -> Call[list[Verdict]]:
    """Defer jobs for exactly the given delays, without counting a failure.
    For None, the engine chooses a delay that grows each time a job is deferred.
    """
    return Call(
        "select job_id, attempt, verdict, state, run_at from trunkline.snooze("
        "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[],"
        " p_delays => %s::interval[], p_reason => %s, p_jitter => false)",
        (
            worker,
            list(jobs),
            list(attempts),
            [None if delay is None else timedelta(seconds=delay) for delay in delays],
            plain_text(reason),
        ),
        rows_of(Verdict),
    )


def release(
    worker: str,
    jobs: Sequence[UUID],
    attempts: Sequence[int],
    reason: str,
    *,
    unstarted: bool = False,
) -> Call[list[Verdict]]:
    """Hand jobs back, as after a shutdown or a deadlock. Unstarted ones count for nothing."""
    return Call(
        "select job_id, attempt, verdict, state, run_at from trunkline.release("
        "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[], p_reason => %s,"
        " p_unstarted => %s::boolean)",
        (worker, list(jobs), list(attempts), plain_text(reason), unstarted),
        rows_of(Verdict),
    )


def acknowledge_cancel(
    worker: str, jobs: Sequence[UUID], attempts: Sequence[int], reasons: Sequence[str | None]
) -> Call[list[Verdict]]:
    """End attempts as cancelled, by a cancel request or by their handlers."""
    return Call(
        "select job_id, attempt, verdict, state, run_at from trunkline.acknowledge_cancel("
        "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[],"
        " p_reasons => %s::text[])",
        (worker, list(jobs), list(attempts), [plain_text(reason) for reason in reasons]),
        rows_of(Verdict),
    )


def progress(
    worker: str,
    job: UUID,
    attempt: int,
    *,
    percent: int | None,
    message: str | None,
    phase: str | None,
) -> Call[str]:
    """Record the progress of an attempt; return ok, cancel or lost."""
    return Call(
        "select trunkline.progress(p_worker => %s, p_job => %s::uuid, p_attempt => %s::integer,"
        " p_percent => %s::integer, p_message => %s, p_phase => %s)",
        (worker, job, attempt, percent, plain_text(message), plain_text(phase)),
        scalar,
    )


def register_worker(
    worker: str,
    queues: Sequence[str] | None,
    tasks: Sequence[str] | None,
    *,
    host: str,
    pid: int,
    version: str,
    detail: Mapping[str, Any],
) -> Call[None]:
    """Register a worker process, so that its death is detected."""
    return Call(
        "select trunkline.register_worker(p_worker => %s, p_queues => %s::text[],"
        " p_tasks => %s::text[], p_host => %s, p_pid => %s::integer, p_version => %s,"
        " p_detail => %s::text::jsonb)",
        (worker, _list(queues), _list(tasks), host, pid, version, json_text(detail)),
        nothing,
    )


class Pulse(NamedTuple):
    """The result of a pulse: active, draining or gone, and the contracts the schema supports."""

    state: str
    version: int
    contract: int
    oldest_contract: int


def pulse(worker: str, detail: Mapping[str, Any]) -> Call[Pulse]:
    """Report that the process is alive, and read which contracts the schema supports."""
    return Call(
        "select trunkline.pulse(p_worker => %s, p_detail => %s::text::jsonb),"
        " v.version, v.contract, v.oldest_contract from trunkline.schema_version() as v",
        (worker, json_text(detail)),
        one(Pulse),
    )


def schema_version() -> Call[SchemaVersion]:
    """Read which contracts the schema supports."""
    return Call(
        "select v.version, v.contract, v.oldest_contract from trunkline.schema_version() as v",
        (),
        one(SchemaVersion),
    )


def schema_release() -> Call[str | None]:
    """Return the release of the package that applied the functions last."""
    return Call("select trunkline.schema_release()", (), scalar)


def stop_worker(worker: str) -> Call[None]:
    """Report that the worker process ends."""
    return Call("select trunkline.stop_worker(p_worker => %s)", (worker,), nothing)


def dependency_results(
    worker: str, job: ClaimedJob, step: str, start: int, limit: int
) -> Call[list[StepResult]]:
    """Return results of a step that the job's step depends on, as JSON text, from an index on."""
    return Call(
        "select item, coalesce(result::text, 'null'), path, sha256, bytes"
        " from trunkline.dependency_results("
        "p_worker => %s, p_job => %s::uuid, p_attempt => %s::integer, p_step => %s,"
        " p_from => %s::integer, p_limit => %s::integer)",
        (worker, job.job_id, job.attempt, step, start, limit),
        rows_of(StepResult),
    )


def job_workflow(worker: str, job: ClaimedJob) -> Call[WorkflowPlace]:
    """Return the workflow of a running job, and the job's place in it."""
    return Call(
        "select trunkline.job_workflow("
        "p_worker => %s, p_job => %s::uuid, p_attempt => %s::integer)",
        (worker, job.job_id, job.attempt),
        _workflow_place,
    )


def _workflow_place(rows: Sequence[Row]) -> WorkflowPlace:
    place = rows[0][0]
    return WorkflowPlace(**{**place, "id": UUID(place["id"])})


def sleep(worker: str, queues: Sequence[str] | None) -> Call[float | None]:
    """Ask to be notified of new jobs; return in how many seconds the next scheduled job is due.
    The server computes the difference, so that nobody compares its clock with a local one.
    """
    return Call(
        "select extract(epoch from"
        " trunkline.sleep(p_worker => %s, p_queues => %s::text[]) - trunkline.clock())::float8",
        (worker, _list(queues)),
        scalar,
    )


def release_forgotten(worker: str, known: Sequence[UUID]) -> Call[int]:
    """Hand back jobs that were claimed for this worker in an answer that never arrived."""
    return Call(
        "select count(*) from trunkline.release_forgotten(p_worker => %s, p_known => %s::uuid[])",
        (worker, list(known)),
        scalar,
    )


def pulse_interval() -> Call[float]:
    """Return how often a worker sends a pulse, in seconds."""
    return Call(
        "select extract(epoch from value::interval)::float8 from trunkline.settings"
        " where name = 'pulse_interval'",
        (),
        scalar,
    )


def wake(worker: str) -> Call[None]:
    """Ask not to be notified any more, because the worker is busy and claims anyway."""
    return Call("select trunkline.wake(p_worker => %s)", (worker,), nothing)


def _list(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)
