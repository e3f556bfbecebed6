"""Errors of durable steps within a handler."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from trunkline.errors.base import TrunklineError


class StepError(TrunklineError):
    """An error of a step, a wait or child jobs of a handler."""

    code = "step_error"


class StepChanged(StepError):
    """A recorded step was called with other arguments, so its result may not fit them."""

    code = "step_changed"
    hint = (
        'Pass on_change="reuse" to keep the recorded result, or delete it with '
        "`trunkline jobs reset-step ID NAME` and run the job again."
    )


class StepConflict(StepError):
    """Two calls of one step run at once, so their order may differ in the next attempt."""

    code = "step_conflict"
    hint = "Pass key= with a different value for each of them, such as the page number."


class StepMismatch(StepError):
    """A recorded result does not match the present annotation of the step's function."""

    code = "step_mismatch"
    hint = (
        "Accept the earlier type as well, give the step a new name, or delete the result with "
        "`trunkline jobs reset-step ID NAME`."
    )

    def __init__(self, message: str, *, result: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        # What other code may be able to read, as in "the result of step read"; None if it cannot.
        self.result = result


class EventTimeout(StepError, TimeoutError):
    """The event did not arrive within the timeout of ctx.wait_for()."""

    code = "event_timeout"
    hint = "Catch EventTimeout, or wait longer."

    def __init__(self, event: str) -> None:
        super().__init__(f"Event {event} did not arrive in time")
        self.event = event


class ChildJobFailed(StepError):
    """A job that ctx.gather_jobs() waited for is dead or was cancelled."""

    code = "child_job_failed"
    hint = "Show its errors: `trunkline jobs show ID`."

    def __init__(
        self,
        job_id: UUID,
        state: str,
        reason: str | None = None,
        *,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        what = (error or {}).get("message") or reason or "no error was recorded"
        super().__init__(f"Child job {job_id} is {state}: {what}")
        self.hint = self.hint.replace("ID", str(job_id))
        self.job_id = job_id
        self.state = state
        self.reason = reason
        self.error = error
