"""The bases of the tree."""

from collections.abc import Mapping
from typing import Any, ClassVar

# Of each fact in the detail of a refusal; the list of known tasks may be long.
_LONGEST_FACT = 200


class TrunklineError(Exception):
    """Base of everything: a message, a hint on what to do, and a stable code."""

    code: ClassVar[str] = "trunkline_error"
    # What the command line exits with.
    exit_code: ClassVar[int] = 1
    hint: str = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint


class DatabaseUnreachable(TrunklineError):
    """No connection to the given server."""

    code = "database_unreachable"
    hint = (
        "Check host, port and database in --dsn or TRUNKLINE_DSN, which looks like "
        "postgresql://user:password@host:5432/database, and that the server is up."
    )


class DsnRequired(TrunklineError):
    """There is no connection string, and the embedded server must not be used."""

    code = "dsn_required"
    hint = (
        "Set TRUNKLINE_DSN to postgresql://user:password@host:5432/database, or pass the "
        "connection string to Trunkline() or with --dsn."
    )


class InvalidVariable(TrunklineError):
    """An environment variable has an invalid value."""

    code = "invalid_variable"


class Refusal(TrunklineError):
    """The engine refused a request, and nothing of it was done.

    ``message`` is constant for each class, so that refusals can be grouped; what is particular to
    one of them is in ``detail`` and shown by ``str``.
    """

    code = "refusal"
    sqlstate: ClassVar[str] = ""
    # Whether the same request may succeed later although nothing about it changed.
    retryable: ClassVar[bool] = False
    http_status: ClassVar[int] = 422

    def __init__(
        self, message: str, *, hint: str | None = None, detail: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.detail: dict[str, Any] = dict(detail or {})

    def __str__(self) -> str:
        facts = ", ".join(
            f"{name} {_shortened(value)}" for name, value in self.detail.items() if name != "code"
        )
        return f"{self.message} ({facts})" if facts else self.message


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_FACT else text[: _LONGEST_FACT - 1] + "…"
