"""Refusals of the engine about workflows, durable steps, events and artifacts."""

from trunkline.errors.base import Refusal


class ArtifactGone(Refusal):
    """The artifact was deleted; its row is kept for a while."""

    code = "artifact_gone"
    sqlstate = "TL057"
    http_status = 410


class EventMismatch(Refusal):
    """An event with the same event id was sent before with another payload."""

    code = "event_mismatch"
    sqlstate = "TL050"
    http_status = 409


class EventTooLarge(Refusal):
    """The payload of an event is larger than 64 KB."""

    code = "event_too_large"
    sqlstate = "TL051"
    http_status = 413


class InvalidArtifact(Refusal):
    """A name, kind, size, hash or path of an artifact is not valid."""

    code = "invalid_artifact"
    sqlstate = "TL058"


class InvalidWorkflow(Refusal):
    """The graph of a workflow is not valid; the detail names the problem, step and path."""

    code = "invalid_workflow"
    sqlstate = "TL041"


class JobsTooDeep(Refusal):
    """Jobs that wait for other jobs are nested more than 10 levels deep."""

    code = "jobs_too_deep"
    sqlstate = "TL055"


class NothingToRetry(Refusal):
    """The workflow has ended without a dead job that could run again."""

    code = "nothing_to_retry"
    sqlstate = "TL047"
    http_status = 409


class StepTooLarge(Refusal):
    """The result of a step is larger than the setting max_payload_bytes."""

    code = "step_too_large"
    sqlstate = "TL052"
    http_status = 413


class StorageQuotaExceeded(Refusal):
    """The artifacts of a tenant would take more than its quota."""

    code = "storage_quota_exceeded"
    sqlstate = "TL059"
    http_status = 507


class TooManySteps(Refusal):
    """A job has recorded 10,000 steps."""

    code = "too_many_steps"
    sqlstate = "TL053"


class UnknownArtifact(Refusal):
    """There is no such artifact, or it belongs to another tenant."""

    code = "unknown_artifact"
    sqlstate = "TL056"
    http_status = 404


class UnknownRecordedStep(Refusal):
    """The job has no recorded step of this name and key."""

    code = "unknown_recorded_step"
    sqlstate = "TL054"
    http_status = 404


class UnknownStep(Refusal):
    """The workflow has no step of this name, or the job does not depend on it."""

    code = "unknown_step"
    sqlstate = "TL044"
    http_status = 404


class UnknownWorkflow(Refusal):
    """No workflow has this id, or it belongs to another tenant."""

    code = "unknown_workflow"
    sqlstate = "TL043"
    http_status = 404


class WorkflowJobGone(Refusal):
    """A job that the rerun needs was discarded or is past retention; the detail names its step."""

    code = "workflow_job_gone"
    sqlstate = "TL046"
    http_status = 410


class WorkflowTooLarge(Refusal):
    """A workflow has more jobs or dependencies than one may have."""

    code = "workflow_too_large"
    sqlstate = "TL042"
    http_status = 413


class WrongWorkflowState(Refusal):
    """The workflow is not in a state that allows the call."""

    code = "wrong_workflow_state"
    sqlstate = "TL045"
    http_status = 409
