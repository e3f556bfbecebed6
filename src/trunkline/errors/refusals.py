"""Refusals of the engine: one class for each row of trunkline_internal.refusals().

Those of workflows, steps, events and artifacts are in `trunkline.errors.durable_refusals`, those of
the installation in `trunkline.errors.schema`. ``retryable`` is true if the same
request, unchanged, may succeed later.
"""

from trunkline.errors.base import Refusal


class ArrayLengthMismatch(Refusal):
    """The arrays of a batch differ in length, or contain nulls."""

    code = "array_length_mismatch"
    sqlstate = "TL008"


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


class IdempotencyMismatch(Refusal):
    """An idempotency key was used before for another task or payload."""

    code = "idempotency_mismatch"
    sqlstate = "TL027"
    http_status = 409


class InvalidArgument(Refusal):
    """An argument is not valid; the detail names it and what it must be."""

    code = "invalid_argument"
    sqlstate = "TL028"


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


class IsolationLevel(Refusal):
    """The isolation level is above READ COMMITTED, so the function could read old rows."""

    code = "isolation_level"
    sqlstate = "TL016"
    http_status = 500


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


class TenantDenied(Refusal):
    """The request names a tenant that the session does not act for."""

    code = "tenant_denied"
    sqlstate = "TL017"
    http_status = 403


class UniqueKeyHeld(Refusal):
    """Another live job holds the unique key."""

    code = "unique_key_held"
    sqlstate = "TL018"
    retryable = True
    http_status = 409


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


class UnknownSchedule(Refusal):
    """There is no such schedule; the detail lists the known ones."""

    code = "unknown_schedule"
    sqlstate = "TL024"
    http_status = 404


class UnknownServiceKey(Refusal):
    """There is no such service key."""

    code = "unknown_service_key"
    sqlstate = "TL060"
    http_status = 404


class UnknownSetting(Refusal):
    """There is no such setting; the detail lists the known ones."""

    code = "unknown_setting"
    sqlstate = "TL020"
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


class WorkerRequired(Refusal):
    """The name of the worker is null, empty or too long."""

    code = "worker_required"
    sqlstate = "TL007"


class WrongState(Refusal):
    """The job is not in a state that allows this."""

    code = "wrong_state"
    sqlstate = "TL019"
    http_status = 409
