"""The changes of many jobs that `jobs` and `dead` offer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import click

from trunkline.cli.bulk import Chosen, Step, Verb
from trunkline.model import ChangedJob, Enqueued, JobFilter
from trunkline.operate import SyncOperator

__all__ = ["acknowledge", "cancel", "discard", "paced", "replay", "reprioritise", "retry"]


def cancel() -> Verb:
    """Return the verb that cancels jobs."""

    def message(job: ChangedJob) -> str:
        match job.outcome:
            case "requested":
                return f"{job.job_id}  running; its worker was asked to stop"
            case "ended":
                return f"{job.job_id}  had ended before: {job.state}"
        return f"{job.job_id}  cancelled"

    return Verb(
        action="cancel",
        name="cancel",
        past="cancelled",
        one=lambda operator, job, reason: operator.jobs.cancel(job, reason=reason),
        message=message,
        many=lambda operator, job_filter, chosen: operator.jobs.cancel_matching(
            job_filter, reason=chosen.reason, cursor=chosen.cursor, all_jobs=chosen.everything
        ),
    )


def retry(*, fresh: bool = False) -> Verb:
    """Return the verb that runs ended jobs again; `fresh` runs their recorded steps again, too."""
    asked: set[UUID] = set()

    def one(operator: SyncOperator, job: UUID, reason: str | None) -> Enqueued:
        asked.add(job)
        return operator.jobs.retry(job, fresh=fresh, reason=reason)

    def message(job: Enqueued) -> str:
        if job.created:
            return f"{job.job_id}  {job.state}, a new job"
        # A dead letter keeps its id; another id belongs to a job that was there before.
        return f"{job.job_id}  {job.state}" + ("" if job.job_id in asked else " already")

    def many(operator: SyncOperator, job_filter: JobFilter, chosen: Chosen) -> Iterator[Step]:
        if fresh:
            raise click.UsageError("--fresh takes ids of dead letters, not a filter.")
        return operator.jobs.retry_matching(
            job_filter, reason=chosen.reason, cursor=chosen.cursor, all_jobs=chosen.everything
        )

    return Verb(
        action="retry",
        name="retry",
        past="run again",
        one=one,
        message=message,
        many=many,
    )


def replay() -> Verb:
    """Return the verb that runs dead letters again."""
    return replace(retry(), name="replay", past="replayed", noun="dead letter", state="dead")


def paced(rate: float, stop_at: float | None, at_least: int) -> Verb:
    """Return the verb that runs dead letters again, so many per second."""

    def many(operator: SyncOperator, job_filter: JobFilter, chosen: Chosen) -> Iterator[Step]:
        return operator.dead.replay(
            job_filter,
            rate=rate,
            stop_at=stop_at,
            at_least=at_least,
            reason=chosen.reason,
            cursor=chosen.cursor,
            all_jobs=chosen.everything,
        )

    return replace(replay(), many=many)


def reprioritise(priority: int) -> Verb:
    """Return the verb that changes the priority of waiting jobs."""
    return Verb(
        action="reprioritise",
        name="reprioritise",
        past="reprioritised",
        one=lambda operator, job, reason: operator.jobs.reprioritise(job, priority, reason=reason),
        message=_outcome,
        many=lambda operator, job_filter, chosen: operator.jobs.reprioritise_matching(
            job_filter,
            priority,
            reason=chosen.reason,
            cursor=chosen.cursor,
            all_jobs=chosen.everything,
        ),
    )


def discard() -> Verb:
    """Return the verb that deletes dead letters."""
    return Verb(
        action="discard",
        name="discard",
        past="discarded",
        one=lambda operator, job, reason: operator.jobs.discard(job, reason=reason),
        message=_outcome,
        many=lambda operator, job_filter, chosen: operator.jobs.discard_matching(
            job_filter, reason=chosen.reason, cursor=chosen.cursor, all_jobs=chosen.everything
        ),
        noun="dead letter",
        state="dead",
        asks_for_ids=True,
    )


def acknowledge() -> Verb:
    """Return the verb that marks dead letters as seen."""
    return Verb(
        action="acknowledge",
        name="acknowledge",
        past="acknowledged",
        one=lambda operator, job, reason: operator.dead.acknowledge(job, reason=reason),
        message=_outcome,
        many=lambda operator, job_filter, chosen: operator.dead.acknowledge_matching(
            job_filter, reason=chosen.reason, cursor=chosen.cursor, all_jobs=chosen.everything
        ),
        noun="dead letter",
        state="dead",
    )


def _outcome(job: ChangedJob) -> str:
    return f"{job.job_id}  {job.outcome}"
