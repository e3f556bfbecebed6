"""The base classes of the tree."""

from collections.abc import Mapping
from typing import Any, ClassVar

# Longest text of one field of a refusal's detail; the list of known tasks may be long.
_LONGEST_FACT = 200


class TrunklineError(Exception):
    """Base of all errors: a message, a hint on what to do next, and a stable code."""

    code: ClassVar[str] = "trunkline_error"
    # Exit code of the command line.
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
        "Check that the server is running, and that host, port and database in --dsn or "
        "TRUNKLINE_DSN are right, as in postgresql://user:password@host:5432/database."
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
    """The engine refused a request and changed nothing.

    ``message`` is constant for each class, so that refusals can be grouped. ``detail`` has the
    facts of one refusal, and ``str`` shows them.
    """

    code = "refusal"
    sqlstate: ClassVar[str] = ""
    # Whether the same request, unchanged, may succeed later.
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
