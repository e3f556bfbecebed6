"""Mistakes in the definition and in calls of tasks, found before anything is stored."""

from trunkline.errors.base import TrunklineError


class TaskError(TrunklineError):
    """A mistake in the definition or the call of a task."""

    code = "task_error"


class AppNotFound(TaskError):
    """The path does not lead to an application."""

    code = "app_not_found"
    exit_code = 2
    hint = (
        "Pass module:variable, for example `trunkline worker shop.jobs:app`. Run the command in a "
        "folder from which Python can import that module."
    )


class DuplicateTask(TaskError):
    """Two handlers have the same task name."""

    code = "duplicate_task"
    hint = 'Give one of them another name: @app.task(name="other_name").'


class InvalidDuration(TaskError):
    """A duration is not valid, negative or too long."""

    code = "invalid_duration"
    hint = 'Pass a timedelta, a number of seconds, or text such as "500ms", "10s", "5m", "1h30m".'

    def __init__(self, value: object) -> None:
        super().__init__(f"{value!r} is not a duration from zero to ten years")


class InvalidOptions(TaskError):
    """The options of a worker are not valid."""

    code = "invalid_options"
    exit_code = 2


class InvalidTask(TaskError):
    """A function cannot be a handler."""

    code = "invalid_task"


class PayloadMismatch(TaskError):
    """Arguments do not match the signature of the handler."""

    code = "payload_mismatch"
    hint = "Pass the parameters of the handler by name, with the annotated types."
    # In a worker: the field that the payload lacks or should not have. None if a type is wrong.
    field: str | None = None
    # In a worker: what the engine says of the job, if the result of another step does not fit.
    result: str | None = None


class ResultMismatch(TaskError):
    """A stored result does not match the handler's return annotation."""

    code = "result_mismatch"
    hint = (
        "The job completed; read its result with `app.jobs.get(id).result`. Another version of the "
        "handler stored it, or the annotation is wrong."
    )


class ResultNotStorable(TaskError):
    """A handler returned a value that cannot be stored as JSON."""

    code = "result_not_storable"
    hint = (
        "Return a value that JSON can represent: None, numbers, text, lists, dictionaries with "
        "text keys, dataclasses, msgspec structs, pydantic models, dates, UUIDs."
    )


class TaskNotCallable(TaskError):
    """A task was called like a function."""

    code = "task_not_callable"
    hint = "Use .enqueue(...) to have a worker run it, or .handler(...) to call the function."


class WrongResult(TaskError):
    """A handler returned a value that does not match its return annotation."""

    code = "wrong_result"
    hint = (
        "Return a value of the annotated type, or correct the annotation. The error contains the "
        "value. The job is dead, because another attempt would do, and pay for, the same work "
        "again."
    )

    def __init__(self, message: str, *, value: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        # JSON text, cut to a bounded length.
        self.value = value


class UnsupportedConnection(TaskError):
    """A connection or session is of an unknown or the wrong kind."""

    code = "unsupported_connection"
    hint = (
        "Pass a psycopg, asyncpg or SQLAlchemy connection or session, or Django's connection. Pass "
        "asynchronous ones to task.options(connection=...), and others to "
        "task.sync.options(connection=...)."
    )
