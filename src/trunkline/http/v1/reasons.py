"""Parts that many bodies share."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["Reason", "Text"]

# PostgreSQL stores no NUL character.
Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00]*$")]


class Reason(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Why a change is made, for the operator log."""

    reason: Text | None = None
