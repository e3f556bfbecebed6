"""The refusals of the profile's functions as exceptions; docs/clinical.md has the table."""

from typing import ClassVar, Final

from trunkline.errors import ProfileRefusal


class ClinicalRefusal(ProfileRefusal):
    """Base of all of them."""

    page: ClassVar[str] = "profiles/docs/clinical.md#refusals"


class UnknownJobType(ClinicalRefusal):
    """Not in ``job_types``; the message lists those that are."""

    code = "clinical_unknown_job_type"
    sqlstate = "CP001"
    hint = "Pass one of the types of clinical.job_types; a new one is a row there."


class PayloadEmpty(ClinicalRefusal):
    """A payload is an object with a field."""

    code = "clinical_payload_empty"
    sqlstate = "CP002"
    hint = "Pass a JSON object with at least one field."


class PayloadNotObject(ClinicalRefusal):
    """A payload is an object with a field."""

    code = "clinical_payload_not_object"
    sqlstate = "CP003"
    hint = 'Pass a JSON object, for example {"shell_file_id": "..."}.'


class InvalidEstimate(ClinicalRefusal):
    """``estimated_tokens`` is not a whole number, negative, or above a minute's capacity."""

    code = "clinical_invalid_estimate"
    sqlstate = "CP004"
    hint = (
        "Pass estimated_tokens as a whole number from 0 to the tokens per minute of the "
        "endpoint, or leave it out for 1000."
    )


class EnqueueDisabled(ClinicalRefusal):
    """``queue.v3_enqueue_enabled`` is off; nothing was stored."""

    code = "clinical_enqueue_disabled"
    sqlstate = "CP005"
    hint = "Nothing was stored. Repeat the call when queue.v3_enqueue_enabled is true again."


class UploadsStopped(ClinicalRefusal):
    """Maintenance; nothing was stored."""

    code = "clinical_uploads_stopped"
    sqlstate = "CP006"
    hint = "Nothing was stored. Repeat the call when the maintenance is over."


class UnknownFile(ClinicalRefusal):
    """The payload names no known file."""

    code = "clinical_unknown_file"
    sqlstate = "CP007"
    hint = "Pass the id of a row of clinical.shell_files as shell_file_id."


class UnknownEndpoint(ClinicalRefusal):
    """No row for provider and endpoint."""

    code = "clinical_unknown_endpoint"
    sqlstate = "CP008"
    hint = "Insert a row for the provider and the endpoint into clinical.api_rate_limits."


class InvalidConfiguration(ClinicalRefusal):
    """Unknown key, or a value of the wrong kind or range."""

    code = "clinical_invalid_configuration"
    sqlstate = "CP009"
    hint = (
        "Pass a value of the kind and the range that clinical.configuration_keys names; a "
        "timeout is three heartbeats or more."
    )


class AuditMissing(ClinicalRefusal):
    """A clinical write without its audit event."""

    code = "clinical_audit_missing"
    sqlstate = "CP010"
    hint = (
        "Write through clinical.write_record, or call clinical.log_audit_event for the row in "
        "the same transaction."
    )


class InvalidPath(ClinicalRefusal):
    """The path is not in the folder of the patient."""

    code = "clinical_invalid_path"
    sqlstate = "CP011"
    hint = (
        "Store the file in the folder of its patient: PATIENT/..., without any other patient's id."
    )


class NotWritable(ClinicalRefusal):
    """Jobs and audit events are not written to directly."""

    code = "clinical_not_writable"
    sqlstate = "CP012"
    hint = (
        "Change jobs by the functions of this schema: enqueue_job_v3, cancel_job, "
        "requeue_dead_letter and the like."
    )


class JobIdMissing(ClinicalRefusal):
    """An event names its job and its patient."""

    code = "clinical_job_id_missing"
    sqlstate = "CP013"
    hint = "Pass the id of a job of that patient: every event is about a job."


class PatientMissing(ClinicalRefusal):
    """An event names its job and its patient."""

    code = "clinical_patient_missing"
    sqlstate = "CP014"
    hint = "Pass p_patient_id: an event about clinical data names its patient."


class StaleStage(ClinicalRefusal):
    """Another attempt owns the job."""

    code = "clinical_stale_stage"
    sqlstate = "CP015"
    hint = "Stop the work and discard its result: another attempt owns the job or it has ended."


class InvalidLimit(ClinicalRefusal):
    """A limit out of its range."""

    code = "clinical_invalid_limit"
    sqlstate = "CP016"
    hint = (
        "requests_per_minute is a whole number from 0; leave the other limits null if "
        "there is none."
    )


class InvalidImport(ClinicalRefusal):
    """An older table that cannot be imported as it is."""

    code = "clinical_invalid_import"
    sqlstate = "CP017"
    hint = (
        "Correct the rows named in the detail, or drop what depends on the column and recreate "
        "it afterwards."
    )


class StepRefused(ClinicalRefusal):
    """There is no such step."""

    code = "clinical_step_refused"
    sqlstate = "CP018"
    hint = "Do what the detail names first, then repeat the step."


class AuditDenied(ClinicalRefusal):
    """An audit event that this caller may not write."""

    code = "clinical_audit_denied"
    sqlstate = "CP019"
    hint = (
        "Name the attempt that you run (p_job_id, p_attempt, p_worker) and the patient of its "
        "job. Events about tables of this profile are written by its functions."
    )


class JobTypeKept(ClinicalRefusal):
    """A job type cannot be deleted or renamed, and required types cannot be deactivated."""

    code = "clinical_job_type_kept"
    sqlstate = "CP020"
    hint = (
        "Set is_active to false: a type keeps its name and its row. Types of the pipeline and "
        "of the audit stay active."
    )


class JobTypeInactive(ClinicalRefusal):
    """The job type is not active."""

    code = "clinical_job_type_inactive"
    sqlstate = "CP021"
    hint = "Let an operator set is_active of the row of clinical.job_types to true."


class InvalidArgument(ClinicalRefusal):
    """An argument out of its range."""

    code = "clinical_invalid_argument"
    sqlstate = "CP022"
    hint = "Pass a value within the range that the detail names."


ERRORS: Final = (
    UnknownJobType,
    PayloadEmpty,
    PayloadNotObject,
    InvalidEstimate,
    EnqueueDisabled,
    UploadsStopped,
    UnknownFile,
    UnknownEndpoint,
    InvalidConfiguration,
    AuditMissing,
    InvalidPath,
    NotWritable,
    JobIdMissing,
    PatientMissing,
    StaleStage,
    InvalidLimit,
    InvalidImport,
    StepRefused,
    AuditDenied,
    JobTypeKept,
    JobTypeInactive,
    InvalidArgument,
)
