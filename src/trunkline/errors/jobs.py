"""How waiting for a job, or an attempt of it, can end badly."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from trunkline.errors.base import TrunklineError


class JobError(TrunklineError):
    """Something about one job."""

    code = "job_error"


class JobCancelled(JobError):
    """The job that was waited for was cancelled."""

    code = "job_cancelled"
    hint = "`trunkline jobs show ID` says when and why; `trunkline jobs retry ID` runs it anew."

    def __init__(self, job_id: UUID, reason: str | None = None) -> None:
        super().__init__(f"Job {job_id} was cancelled" + (f": {reason}" if reason else ""))
        self.hint = self.hint.replace("ID", str(job_id))
        self.job_id = job_id
        self.reason = reason


class JobFailed(JobError):
    """The job that was waited for is a dead letter."""

    code = "job_failed"
    hint = "See `trunkline dead show ID`; after the cause is gone: `trunkline dead replay ID`."

    def __init__(
        self,
        job_id: UUID,
        reason: str | None = None,
        *,
        error: Mapping[str, Any] | None = None,
        errors: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        what = (error or {}).get("message") or reason or "no error was recorded"
        super().__init__(f"Job {job_id} is dead: {what}")
        self.hint = self.hint.replace("ID", str(job_id))
        self.job_id = job_id
        self.reason = reason
        # Of the last attempt, and of all of them, newest last.
        self.error = error
        self.errors = errors


class WaitTimeout(JobError, TimeoutError):
    """The job had not ended when the time to wait was over; it goes on."""

    code = "wait_timeout"
    hint = "Wait longer, or look why it does not run: `trunkline jobs explain ID`."

    def __init__(self, job_id: UUID, seconds: float, *, server: str | None = None) -> None:
        super().__init__(f"Job {job_id} had not ended after {seconds:g} seconds")
        self.hint = self.hint.replace("ID", str(job_id))
        if server:
            self.hint += f" The job is on the server {server}; its workers must use the same one."
        self.job_id = job_id


class HardLimitExceeded(JobError):
    """An attempt ran longer than the hard limit of its task."""

    code = "hard_limit_exceeded"
    hint = "Make the work shorter, or raise hard_limit of the task."


class HandlerProcessDied(JobError):
    """The process that ran a handler with process=True ended before the handler did."""

    code = "handler_process_died"
    hint = "It crashed, called exit, or was killed, for example for want of memory; see the log."
