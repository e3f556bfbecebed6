"""The results of a set or a map, as an argument of the handler that uses them."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast, overload

from trunkline.errors import InvalidTask

__all__ = ["LoopResults", "Results", "ThreadResults"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# How many results are kept in memory and read at once.
PAGE = 200


class Results(Sequence[T_co]):
    """The results of the jobs of a step, in the order of its requests or of the mapped list.

    Its length is known; the results are read from the database in pages. In a `def` handler, use
    it like a list. In an `async def` handler, use `async for`, `at` and `all`. In a test, create
    one from a list: `Results(["one", "two"])`.
    """

    def __init__(self, values: Iterable[T_co] = ()) -> None:
        self._values: Sequence[T_co] = tuple(values)

    def __trunkline_json__(self) -> list[T_co]:
        return list(self)

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        return self._values[index]

    def __iter__(self) -> Iterator[T_co]:
        return iter(self._values)

    def __aiter__(self) -> AsyncIterator[T_co]:
        return _in_memory(self._values)

    async def at(self, index: int) -> T_co:
        """Return one result; a negative index counts from the end."""
        return self._values[index]

    async def all(self) -> list[T_co]:
        """Return all results as a list, which must fit into memory."""
        return [value async for value in self]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Results):
            return self is other or (len(self) == len(other) and list(self) == list(other))
        return NotImplemented

    # Like a list: equal ones may not stay equal.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} results>"


async def _in_memory(values: Iterable[T]) -> AsyncIterator[T]:
    for value in values:
        yield value


class _Pages(Generic[T]):
    """The length of a sequence, and the page that was read last."""

    def __init__(self, total: int, first: Sequence[T]) -> None:
        self.total = total
        self.start = 0
        self.values = first

    def place(self, index: int) -> int:
        """Return an index from the start, or raise IndexError."""
        place = operator.index(index)
        if place < 0:
            place += self.total
        if not 0 <= place < self.total:
            raise IndexError(f"index {index} of {self.total} results")
        return place

    def has(self, place: int) -> bool:
        return self.start <= place < self.start + len(self.values)

    def keep(self, start: int, values: Sequence[T]) -> None:
        self.start, self.values = start, values

    def at(self, place: int) -> T:
        return self.values[place - self.start]


class ThreadResults(Results[T]):
    """Results that a `def` handler reads."""

    def __init__(self, total: int, first: Sequence[T], read: Callable[[int], Sequence[T]]) -> None:
        super().__init__()
        self._pages = _Pages(total, first)
        self._read = read

    def __len__(self) -> int:
        return self._pages.total

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._at(place) for place in range(*index.indices(len(self)))]
        return self._at(self._pages.place(index))

    def __iter__(self) -> Iterator[T]:
        return (self._at(place) for place in range(len(self)))

    def __aiter__(self) -> AsyncIterator[T]:
        raise _wrong("async for", "a plain handler", "for")

    async def at(self, index: int) -> T:
        """Refuse: a plain handler cannot await."""
        raise _wrong(f"await results.at({index})", "a plain handler", f"results[{index}]")

    def _at(self, place: int) -> T:
        if not self._pages.has(place):
            # Backwards, the page ends with the result that was asked for.
            start = place if place >= self._pages.start else max(place - PAGE + 1, 0)
            self._pages.keep(start, self._read(start))
            if not self._pages.has(place):
                # A page of large results is shorter.
                self._pages.keep(place, self._read(place))
        return self._pages.at(place)


class LoopResults(Results[T]):
    """Results that an `async def` handler reads."""

    def __init__(
        self, total: int, first: Sequence[T], read: Callable[[int], Awaitable[Sequence[T]]]
    ) -> None:
        super().__init__()
        self._pages = _Pages(total, first)
        self._read = read

    def __len__(self) -> int:
        return self._pages.total

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        raise _wrong("results[…]", "an `async def` handler", "await results.at(…)")

    def __iter__(self) -> Iterator[T]:
        raise _wrong("for", "an `async def` handler", "async for")

    async def __aiter__(self) -> AsyncIterator[T]:
        for place in range(len(self)):
            yield await self._at(place)

    async def at(self, index: int) -> T:
        """Return one result; a negative index counts from the end."""
        return await self._at(self._pages.place(index))

    async def _at(self, place: int) -> T:
        if not self._pages.has(place):
            start = place if place >= self._pages.start else max(place - PAGE + 1, 0)
            self._pages.keep(start, await self._read(start))
            if not self._pages.has(place):
                # A page of large results is shorter.
                self._pages.keep(place, await self._read(place))
        return self._pages.at(place)


def _wrong(call: str, where: str, instead: str) -> InvalidTask:
    return InvalidTask(f"`{call}` over results in {where}", hint=f"Write `{instead}`.")


def item_type(kind: Any) -> Any:
    """Return T for a parameter that is annotated `Results[T]`, or None for any other."""
    if kind is Results:
        return Any
    if getattr(kind, "__origin__", None) is Results:
        return cast("tuple[Any, ...]", kind.__args__)[0]
    return None
