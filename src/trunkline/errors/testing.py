"""Errors of `trunkline.testing`, other than failed assertions."""

from trunkline.errors.base import TrunklineError


class SandboxError(TrunklineError):
    """An error of the sandbox, the database of a test."""

    code = "sandbox_error"


class DrainUnfinished(SandboxError):
    """A drain ran its maximum number of jobs, and there were still more."""

    code = "drain_unfinished"
    hint = (
        "A handler enqueues or snoozes endlessly. Pass max_jobs=... to stop after that many jobs, "
        "or until_empty=False to run only the jobs that exist now."
    )


class JobNotRunnable(SandboxError):
    """The job to run cannot be claimed."""

    code = "job_not_runnable"


class SandboxMisused(SandboxError):
    """A sandbox is not open, or is used from the wrong kind of test."""

    code = "sandbox_misused"
