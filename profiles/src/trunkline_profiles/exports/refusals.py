"""The refusals of the profile's functions as exceptions; docs/exports.md has the table."""

from typing import ClassVar, Final

from trunkline.errors import ProfileRefusal


class ExportRefusal(ProfileRefusal):
    """Base of all of them."""

    page: ClassVar[str] = "profiles/docs/exports.md#refusals"


class UnknownDocument(ExportRefusal):
    """There is no such document, or it is another user's."""

    code = "exports_unknown_document"
    sqlstate = "EX001"
    http_status = 404
    hint = "Pass the id of a document of this user."


class InvalidRequest(ExportRefusal):
    """A field of the request is wrong; the detail names it."""

    code = "exports_invalid_request"
    sqlstate = "EX002"
    http_status = 400
    hint = "Correct the fields that the detail names, then repeat the request."


class UserMissing(ExportRefusal):
    """A request belongs to a user, and users act only for themselves."""

    code = "exports_user_missing"
    sqlstate = "EX003"
    http_status = 401
    hint = "Sign in, or pass the user as p_user_id."


class DailyQuota(ExportRefusal):
    """The user's operations of this day are used up."""

    code = "exports_daily_quota"
    sqlstate = "EX004"
    http_status = 429
    retryable = True
    hint = "Wait until the next day, UTC; free_at in the detail is when it begins."


class QueueFull(ExportRefusal):
    """Too many exports wait or run."""

    code = "exports_queue_full"
    sqlstate = "EX005"
    http_status = 429
    retryable = True
    hint = "Wait until earlier exports have ended, then repeat the request."


class StorageFull(ExportRefusal):
    """The exports of the user take as much as they may."""

    code = "exports_storage_full"
    sqlstate = "EX006"
    http_status = 507
    hint = "Delete exports with exports.delete_export to free space, then repeat the request."


class UnknownJob(ExportRefusal):
    """There is no such export, or it is another user's."""

    code = "exports_unknown_job"
    sqlstate = "EX007"
    http_status = 404
    hint = "Pass the id of an export of this user, as create_export_job returned it."


class AlreadyFinished(ExportRefusal):
    """An export that has ended cannot be cancelled."""

    code = "exports_already_finished"
    sqlstate = "EX008"
    http_status = 409
    hint = "The export has ended: read its status instead."


class UnknownBatch(ExportRefusal):
    """There is no such batch with a completed export, or it is another user's."""

    code = "exports_unknown_batch"
    sqlstate = "EX009"
    http_status = 404
    hint = "Pass the id of a batch of this user, as create_export_batch returned it."


class BatchBusy(ExportRefusal):
    """A batch waits until the user has fewer running exports."""

    code = "exports_batch_busy"
    sqlstate = "EX010"
    http_status = 429
    retryable = True
    hint = "Wait until one of your running exports has ended, then repeat the request."


class UnknownExport(ExportRefusal):
    """There is no such row of the history, or it is another user's."""

    code = "exports_unknown_export"
    sqlstate = "EX011"
    http_status = 404
    hint = "Pass the id of a row of exports.export_history of this user."


class ExportExpired(ExportRefusal):
    """The file has expired or was deleted."""

    code = "exports_export_expired"
    sqlstate = "EX012"
    http_status = 410
    hint = "Export the document again: files are kept for seven days."


class NotAdministrator(ExportRefusal):
    """Only administrators start the cleanup by hand."""

    code = "exports_not_administrator"
    sqlstate = "EX013"
    http_status = 403
    hint = "Ask an operator, or a person with is_administrator in exports.people."


class StaleJob(ExportRefusal):
    """Another attempt owns the export, or it has ended."""

    code = "exports_stale_job"
    sqlstate = "EX014"
    http_status = 409
    hint = "Stop the work and discard its result: another attempt owns the job or it has ended."


class StepRefused(ExportRefusal):
    """There is no such step of the roll-out."""

    code = "exports_step_refused"
    sqlstate = "EX015"
    http_status = 409
    hint = "Do what the detail names first, then repeat the step."


class InvalidAttempt(ExportRefusal):
    """Attempts count from 1."""

    code = "exports_invalid_attempt"
    sqlstate = "EX016"
    http_status = 400
    hint = "Pass the number of an attempt, 1 or more."


ERRORS: Final[tuple[type[ProfileRefusal], ...]] = (
    UnknownDocument,
    InvalidRequest,
    UserMissing,
    DailyQuota,
    QueueFull,
    StorageFull,
    UnknownJob,
    AlreadyFinished,
    UnknownBatch,
    BatchBusy,
    UnknownExport,
    ExportExpired,
    NotAdministrator,
    StaleJob,
    StepRefused,
    InvalidAttempt,
)
