"""What the routes of the profiles share: refusals of their functions, ids, and bodies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, LiteralString
from uuid import UUID

from trunkline.errors import DatabaseProblem, ProfileRefusal
from trunkline.http import CallerSession

__all__ = ["Asker", "as_id"]


class Asker:
    """Runs statements as the caller of a request, and raises a profile's own refusals."""

    def __init__(self, errors: Iterable[type[ProfileRefusal]]) -> None:
        self._errors = {error.sqlstate: error for error in errors}

    async def __call__(
        self, session: CallerSession, query: LiteralString, *parameters: Any
    ) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, which is one transaction."""
        try:
            return await session.query(query, *parameters)
        except DatabaseProblem as problem:
            cause: Any = problem.__cause__
            refusal = self._errors.get(getattr(cause, "sqlstate", None) or "")
            if refusal is None:
                raise
            detail = _facts(cause.diag.message_detail)
            raise refusal(
                cause.diag.message_primary, hint=cause.diag.message_hint, detail=detail
            ) from cause

    async def value(self, session: CallerSession, query: LiteralString, *parameters: Any) -> Any:
        """Return the only value of the only row."""
        return (await self(session, query, *parameters))[0][0]


def as_id(text: object) -> UUID | None:
    """Return a text as an id, if it is one in its usual spelling."""
    try:
        found = UUID(str(text))
    except ValueError:
        return None
    return found if str(found) == str(text).lower() else None


def _facts(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {name: value for name, value in found.items() if name != "code"}
