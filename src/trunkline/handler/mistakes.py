"""Clear errors for `with` in place of `async with`, and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from trunkline.errors import InvalidTask

__all__ = ["AsyncOnly", "SyncOnly"]


class AsyncOnly:
    """Base of context managers that are entered with `async with`."""

    # The call that returns the context manager, for the message.
    _call: ClassVar[str]

    if not TYPE_CHECKING:  # a type checker must refuse `with`

        def __enter__(self) -> NoReturn:
            raise InvalidTask(
                f"`with {self._call}` in an `async def` handler", hint="Write `async with`."
            )

        def __exit__(self, *_: Any) -> None:
            """Never entered."""


class SyncOnly:
    """Base of context managers that are entered with `with`."""

    _call: ClassVar[str]

    if not TYPE_CHECKING:  # a type checker must refuse `async with`

        async def __aenter__(self) -> NoReturn:
            raise InvalidTask(f"`async with {self._call}` in a plain handler", hint="Write `with`.")

        async def __aexit__(self, *_: Any) -> None:
            """Never entered."""
