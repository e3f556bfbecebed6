"""Mistakes in the definition of tasks and in calls of them, found before anything is stored."""

from trunkline.errors.base import TrunklineError


class TaskError(TrunklineError):
    """Something about a task or a call of it."""

    code = "task_error"


class AppNotFound(TaskError):
    """The path of an application does not lead to one."""

    code = "app_not_found"
    exit_code = 2
    hint = (
        "Name it as module:variable, for example `trunkline worker shop.jobs:app`, and run the "
        "command in the folder from which Python can import that module."
    )


class DuplicateTask(TaskError):
    """Two handlers have the same task name."""

    code = "duplicate_task"
    hint = "Give one of them another name: @app.task(name=...)."


class InvalidDuration(TaskError):
    """A length of time cannot be read, is negative or too long."""

    code = "invalid_duration"
    hint = 'Pass a timedelta, a number of seconds, or text such as "500ms", "10s", "5m", "1h30m".'

    def __init__(self, value: object) -> None:
        super().__init__(f"{value!r} is not a length of time from zero to ten years")


class InvalidOptions(TaskError):
    """A worker was given options with which it could not work."""

    code = "invalid_options"
    exit_code = 2


class InvalidTask(TaskError):
    """A function cannot be a handler as it is."""

    code = "invalid_task"


class PayloadMismatch(TaskError):
    """Arguments do not fit the signature of the handler."""

    code = "payload_mismatch"
    hint = "The parameters of the handler are the schema; pass them by name with those types."
    # In a worker: the field that the payload lacks or should not have. None where a type is wrong.
    field: str | None = None


class ResultMismatch(TaskError):
    """A stored result does not fit what the handler is annotated to return."""

    code = "result_mismatch"
    hint = (
        "The job ended well; its result is in `app.jobs.get(id).result`. It was stored by another "
        "version of the handler, or the annotation is wrong."
    )


class ResultNotStorable(TaskError):
    """A handler returned something that is not JSON."""

    code = "result_not_storable"
    hint = (
        "Return what JSON can hold: None, numbers, text, lists, dictionaries with text keys, "
        "dataclasses, msgspec structs, pydantic models, dates, UUIDs."
    )


class TaskNotCallable(TaskError):
    """A task was called like the function it was made of."""

    code = "task_not_callable"
    hint = "Use .enqueue(...) to have a worker run it, or .handler(...) to call the function."


class WrongResult(TaskError):
    """A handler returned something that does not match its annotated return type."""

    code = "wrong_result"
    hint = (
        "Return what the annotation says, or correct the annotation; the value is in the error. "
        "The job is dead: another attempt would do, and pay for, the same work again."
    )

    def __init__(self, message: str, *, value: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        # JSON text, cut to a bounded length.
        self.value = value


class UnsupportedConnection(TaskError):
    """A connection or session of a kind that is not known, or of the wrong one."""

    code = "unsupported_connection"
    hint = (
        "Pass a psycopg, asyncpg or SQLAlchemy connection or session, or Django's connection; "
        "asynchronous ones to task.options(connection=...), the others to "
        "task.sync.options(connection=...)."
    )
