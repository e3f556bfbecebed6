"""The refusals of the profile's functions as exceptions; docs/studio.md has the table."""

from typing import ClassVar, Final

from trunkline.errors import ProfileRefusal


class StudioRefusal(ProfileRefusal):
    """Base of all of them."""

    page: ClassVar[str] = "profiles/docs/studio.md#refusals"


class UnknownType(StudioRefusal):
    """Not an active row of ``job_types``."""

    code = "studio_unknown_type"
    sqlstate = "TA001"
    http_status = 400
    hint = "Pass one of the types of studio.job_types."


class InvalidParams(StudioRefusal):
    """An order names two people with their births, and systems; the message names the flaw."""

    code = "studio_invalid_params"
    sqlstate = "TA002"
    http_status = 400
    hint = (
        "Pass person1 and person2 with name and born, and systems as a list of names from "
        "studio.systems."
    )


class TooLarge(StudioRefusal):
    """Params, input and output are metadata: neither large nor the content of files."""

    code = "studio_too_large"
    sqlstate = "TA003"
    http_status = 400
    hint = "Upload the content as an artifact and pass a reference: tables hold metadata only."


class UnknownJob(StudioRefusal):
    """There is no such job, or it is another user's."""

    code = "studio_unknown_job"
    sqlstate = "TA004"
    http_status = 404
    hint = "Pass the id of a job of this user, as start_job returned it."


class UserMissing(StudioRefusal):
    """An order belongs to a user, and users order only for themselves."""

    code = "studio_user_missing"
    sqlstate = "TA005"
    http_status = 403
    hint = "Sign in, or pass the user as p_user_id."


class UnknownTaskType(StudioRefusal):
    """Not a row of ``task_types``."""

    code = "studio_unknown_task_type"
    sqlstate = "TA006"
    http_status = 400
    hint = "Pass types of studio.task_types."


class StaleTask(StudioRefusal):
    """Another attempt owns the task, or it has ended."""

    code = "studio_stale_task"
    sqlstate = "TA007"
    http_status = 409
    hint = "Stop the work and discard its result: another attempt owns the task or it has ended."


class InvalidArtifact(StudioRefusal):
    """A file of another type, or one that was not prepared."""

    code = "studio_invalid_artifact"
    sqlstate = "TA008"
    http_status = 400
    hint = (
        "Pass the path that prepare_artifact returned, with the bytes and the sha256 of the file."
    )


class StepRefused(StudioRefusal):
    """There is no such step of the cut-over."""

    code = "studio_step_refused"
    sqlstate = "TA009"
    http_status = 409
    hint = "Do what the detail names first, then repeat the step."


class StartElsewhere(StudioRefusal):
    """During the cut-over, new jobs still start in the older system."""

    code = "studio_start_elsewhere"
    sqlstate = "TA010"
    http_status = 409
    hint = "Start the job in the older system, or take the step new_to_queue of the cut-over."


ERRORS: Final[tuple[type[ProfileRefusal], ...]] = (
    UnknownType,
    InvalidParams,
    TooLarge,
    UnknownJob,
    UserMissing,
    UnknownTaskType,
    StaleTask,
    InvalidArtifact,
    StepRefused,
    StartElsewhere,
)
