"""Errors of attempts, and of waiting for a job."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from trunkline.errors.base import TrunklineError


class JobError(TrunklineError):
    """An error of one job."""

    code = "job_error"


class JobCancelled(JobError):
    """The awaited job was cancelled."""

    code = "job_cancelled"
    hint = "`trunkline jobs show ID` shows when and why. `trunkline jobs retry ID` runs it again."

    def __init__(self, job_id: UUID, reason: str | None = None) -> None:
        super().__init__(f"Job {job_id} was cancelled" + (f": {reason}" if reason else ""))
        self.hint = self.hint.replace("ID", str(job_id))
        self.job_id = job_id
        self.reason = reason


class JobFailed(JobError):
    """The awaited job is a dead letter."""

    code = "job_failed"
    hint = "Show its errors: `trunkline dead show ID`. Run it again: `trunkline dead replay ID`."

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
        # The error of the last attempt, and those of all attempts, newest last.
        self.error = error
        self.errors = errors


class EmitTooLarge(JobError):
    """The attempt has emitted as much partial output as an attempt may."""

    code = "emit_too_large"
    hint = "Emit less, or store large output as an artifact: ctx.artifact(name, content)."

    def __init__(self, job_id: UUID, size: int, most: int) -> None:
        super().__init__(f"The attempt of job {job_id} emits {size} bytes; {most} are allowed")
        self.job_id = job_id


class WaitTimeout(JobError, TimeoutError):
    """The job did not end within the timeout. It still waits or runs."""

    code = "wait_timeout"
    hint = "Wait longer, or find out why it does not run: `trunkline jobs explain ID`."

    def __init__(self, job_id: UUID, seconds: float, *, server: str | None = None) -> None:
        super().__init__(f"Job {job_id} had not ended after {seconds:g} seconds")
        self.hint = self.hint.replace("ID", str(job_id))
        if server:
            self.hint += f" The job is on the server {server}; its workers must use the same one."
        self.job_id = job_id


class HardLimitExceeded(JobError):
    """An attempt ran longer than the hard limit of its task."""

    code = "hard_limit_exceeded"
    hint = 'Split the work, or raise the hard limit of the task: @app.task(hard_limit="30m").'


class HandlerProcessDied(JobError):
    """The process that ran a handler with process=True ended before the handler did."""

    code = "handler_process_died"
    hint = "It crashed, called exit, or was killed, for example by lack of memory. Read the log."
