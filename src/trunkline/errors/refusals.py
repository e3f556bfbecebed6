"""Refusals of the engine: one class for each row of trunkline_internal.refusals().

The installation's refusals are in `trunkline.errors.schema`. ``retryable`` is true if the same
request, unchanged, may succeed later.
"""

from trunkline.errors.base import Refusal


class ArrayLengthMismatch(Refusal):
    """The arrays of a batch differ in length, or contain nulls."""

    code = "array_length_mismatch"
    sqlstate = "TL008"


class ArtifactGone(Refusal):
    """The artifact was deleted; its row is kept for a while."""

    code = "artifact_gone"
    sqlstate = "TL057"
    http_status = 410


class AttemptCancelled(Refusal):
    """The worker has received a cancel request, so the attempt can no longer be completed."""

    code = "attempt_cancelled"
    sqlstate = "TL040"
    http_status = 409


class CostOverLimit(Refusal):
    """A job costs more than its limit can ever allow."""

    code = "cost_over_limit"
    sqlstate = "TL033"


class EmptyFilter(Refusal):
    """A filter for a change of many jobs would match all of them, and the caller did not say so."""

    code = "empty_filter"
    sqlstate = "TL038"


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


class IdempotencyMismatch(Refusal):
    """An idempotency key was used before for another task or payload."""

    code = "idempotency_mismatch"
    sqlstate = "TL027"
    http_status = 409


class InvalidArgument(Refusal):
    """An argument is not valid; the detail names it and what it must be."""

    code = "invalid_argument"
    sqlstate = "TL028"


class InvalidArtifact(Refusal):
    """A name, kind, size, hash or path of an artifact is not valid."""

    code = "invalid_artifact"
    sqlstate = "TL058"


class InvalidCost(Refusal):
    """A cost has a value that is not a whole number, or the task has no limits."""

    code = "invalid_cost"
    sqlstate = "TL032"


class InvalidCron(Refusal):
    """A cron expression is not valid, or is never due."""

    code = "invalid_cron"
    sqlstate = "TL012"


class InvalidFilter(Refusal):
    """A filter of jobs has an unknown field or a value that does not fit its field."""

    code = "invalid_filter"
    sqlstate = "TL037"


class InvalidPolicy(Refusal):
    """A task policy is not valid."""

    code = "invalid_policy"
    sqlstate = "TL022"


class InvalidSetting(Refusal):
    """A value does not have the type or range of its setting."""

    code = "invalid_setting"
    sqlstate = "TL021"


class InvalidWorkflow(Refusal):
    """The graph of a workflow is not valid; the detail names the problem, step and path."""

    code = "invalid_workflow"
    sqlstate = "TL041"


class IsolationLevel(Refusal):
    """The isolation level is above READ COMMITTED, so the function could read old rows."""

    code = "isolation_level"
    sqlstate = "TL016"
    http_status = 500


class JobsTooDeep(Refusal):
    """Jobs that wait for other jobs are nested more than 10 levels deep."""

    code = "jobs_too_deep"
    sqlstate = "TL055"


class LimitKeyMissing(Refusal):
    """The payload lacks a value for a key in the limit's name."""

    code = "limit_key_missing"
    sqlstate = "TL031"


class LimitOutOfRange(Refusal):
    """A number is out of the range in the detail."""

    code = "limit_out_of_range"
    sqlstate = "TL006"


class LimitQueueFull(Refusal):
    """The maximum number of jobs already waits for a limit."""

    code = "limit_queue_full"
    sqlstate = "TL034"
    retryable = True
    http_status = 429


class NeedsAllTenants(Refusal):
    """A session that acts for one tenant requested a change that affects all tenants."""

    code = "needs_all_tenants"
    sqlstate = "TL036"
    http_status = 403


class NegativeDelay(Refusal):
    """A delay is below zero."""

    code = "negative_delay"
    sqlstate = "TL004"


class NothingToRetry(Refusal):
    """The workflow has ended without a dead job that could run again."""

    code = "nothing_to_retry"
    sqlstate = "TL047"
    http_status = 409


class PayloadNotObject(Refusal):
    """The payload is not a JSON object."""

    code = "payload_not_object"
    sqlstate = "TL002"


class PayloadTooLarge(Refusal):
    """A payload or result is larger than max_payload_bytes."""

    code = "payload_too_large"
    sqlstate = "TL003"
    http_status = 413


class PriorityOutOfRange(Refusal):
    """A priority is not from -50 to 49."""

    code = "priority_out_of_range"
    sqlstate = "TL005"


class QueueFull(Refusal):
    """The queue has reached its maximum number of ready jobs."""

    code = "queue_full"
    sqlstate = "TL011"
    retryable = True
    http_status = 429


class QueuePaused(Refusal):
    """The queue is paused and refuses new jobs."""

    code = "queue_paused"
    sqlstate = "TL010"
    retryable = True
    http_status = 503


class QuotaSpent(Refusal):
    """The quota of a limit, or a budget, is spent; the detail has the time to try again."""

    code = "quota_spent"
    sqlstate = "TL035"
    retryable = True
    http_status = 429


class StaleAttempt(Refusal):
    """Another attempt owns the job, or the job has ended: discard the work."""

    code = "stale_attempt"
    sqlstate = "TL009"
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


class TenantDenied(Refusal):
    """The request names a tenant that the session does not act for."""

    code = "tenant_denied"
    sqlstate = "TL017"
    http_status = 403


class TooManySteps(Refusal):
    """A job has recorded 10,000 steps."""

    code = "too_many_steps"
    sqlstate = "TL053"


class UniqueKeyHeld(Refusal):
    """Another live job holds the unique key."""

    code = "unique_key_held"
    sqlstate = "TL018"
    retryable = True
    http_status = 409


class UnknownArtifact(Refusal):
    """There is no such artifact, or it belongs to another tenant."""

    code = "unknown_artifact"
    sqlstate = "TL056"
    http_status = 404


class UnknownDuty(Refusal):
    """There is no such duty; the detail lists the known ones."""

    code = "unknown_duty"
    sqlstate = "TL029"
    http_status = 404


class UnknownJob(Refusal):
    """There is no such job, or it is another tenant's."""

    code = "unknown_job"
    sqlstate = "TL015"
    http_status = 404


class UnknownLimit(Refusal):
    """There is no such limit; the detail lists the known ones."""

    code = "unknown_limit"
    sqlstate = "TL030"
    http_status = 404


class UnknownQueue(Refusal):
    """There is no such queue; the detail lists the known ones."""

    code = "unknown_queue"
    sqlstate = "TL026"
    http_status = 404


class UnknownRecordedStep(Refusal):
    """The job has no recorded step of this name and key."""

    code = "unknown_recorded_step"
    sqlstate = "TL054"
    http_status = 404


class UnknownSchedule(Refusal):
    """There is no such schedule; the detail lists the known ones."""

    code = "unknown_schedule"
    sqlstate = "TL024"
    http_status = 404


class UnknownSetting(Refusal):
    """There is no such setting; the detail lists the known ones."""

    code = "unknown_setting"
    sqlstate = "TL020"
    http_status = 404


class UnknownStep(Refusal):
    """The workflow has no step of this name, or the job does not depend on it."""

    code = "unknown_step"
    sqlstate = "TL044"
    http_status = 404


class UnknownTask(Refusal):
    """The task is not registered; the detail lists the known ones."""

    code = "unknown_task"
    sqlstate = "TL001"


class UnknownTimeZone(Refusal):
    """There is no such time zone, or the name is an abbreviation or offset."""

    code = "unknown_time_zone"
    sqlstate = "TL023"


class UnknownWorker(Refusal):
    """The worker is not registered, or was removed."""

    code = "unknown_worker"
    sqlstate = "TL025"
    http_status = 404


class UnknownWorkflow(Refusal):
    """No workflow has this id, or it belongs to another tenant."""

    code = "unknown_workflow"
    sqlstate = "TL043"
    http_status = 404


class WorkerRequired(Refusal):
    """The name of the worker is null, empty or too long."""

    code = "worker_required"
    sqlstate = "TL007"


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


class WrongState(Refusal):
    """The job is not in a state that allows this."""

    code = "wrong_state"
    sqlstate = "TL019"
    http_status = 409


class WrongWorkflowState(Refusal):
    """The workflow is not in a state that allows the call."""

    code = "wrong_workflow_state"
    sqlstate = "TL045"
    http_status = 409
