"""What can go wrong in `trunkline.testing`, other than a test that fails."""

from trunkline.errors.base import TrunklineError


class SandboxError(TrunklineError):
    """Something about a disposable database of a test."""

    code = "sandbox_error"


class DrainUnfinished(SandboxError):
    """Jobs were still being made when a drain had run very many of them."""

    code = "drain_unfinished"
    hint = (
        "A handler enqueues or snoozes without an end. Pass max_jobs=... to stop after so many, or "
        "until_empty=False to run only what is there now."
    )


class JobNotRunnable(SandboxError):
    """The job that a test wants to run cannot be claimed."""

    code = "job_not_runnable"


class SandboxMisused(SandboxError):
    """A sandbox is not open, or is used from the wrong kind of test."""

    code = "sandbox_misused"
