"""What a check of the whole system found."""

from typing import Literal, NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """The result of one check, and what to do about it."""

    check: str
    level: Literal["ok", "warn", "fail"]
    message: str
    hint: str | None = None
