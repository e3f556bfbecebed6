"""Results of many jobs: read in pages, by plain and by asynchronous handlers."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from trunkline import Results
from trunkline.errors import InvalidTask
from trunkline.handler.results import PAGE, LoopResults, ThreadResults, item_type

TOTAL = 2 * PAGE + 50


class Source:
    """Numbers from 0, and from which index on they were read."""

    def __init__(self) -> None:
        self.reads: list[int] = []

    def read(self, start: int) -> Sequence[int]:
        self.reads.append(start)
        return range(start, min(start + PAGE, TOTAL))

    async def read_async(self, start: int) -> Sequence[int]:
        return self.read(start)


@pytest.fixture
def source() -> Source:
    return Source()


def plain(source: Source) -> Results[int]:
    return ThreadResults(TOTAL, range(PAGE), source.read)


def asynchronous(source: Source) -> Results[int]:
    return LoopResults(TOTAL, range(PAGE), source.read_async)


def test_a_plain_handler_reads_pages_as_it_goes_on(source: Source) -> None:
    results = plain(source)
    iterator = iter(results)
    assert [next(iterator) for _ in range(PAGE)] == list(range(PAGE))
    assert source.reads == []
    assert list(iterator) == list(range(PAGE, TOTAL))
    assert source.reads == [PAGE, 2 * PAGE]
    assert len(results) == TOTAL


def test_a_plain_handler_uses_it_like_a_list(source: Source) -> None:
    results = plain(source)
    assert results[-1] == TOTAL - 1
    assert results[7] == 7
    assert results[PAGE - 2 : PAGE + 2] == list(range(PAGE - 2, PAGE + 2))
    assert results[::-100] == list(range(TOTAL))[::-100]
    assert 5 in results
    assert results.index(PAGE) == PAGE
    for index in (TOTAL, -TOTAL - 1):
        with pytest.raises(IndexError, match=f"of {TOTAL} results"):
            results[index]


def test_reading_backwards_reads_each_page_once(source: Source) -> None:
    results = plain(source)
    assert list(reversed(results)) == list(reversed(range(TOTAL)))
    assert len(source.reads) <= 4


def test_an_asynchronous_handler_reads_pages_as_it_goes_on(source: Source) -> None:
    results = asynchronous(source)

    async def use() -> tuple[list[int], list[int], int, int]:
        some = [number async for number in results]
        return some, await results.all(), await results.at(-1), await results.at(3)

    everything = list(range(TOTAL))
    assert asyncio.run(use()) == (everything, everything, TOTAL - 1, 3)
    assert len(results) == TOTAL


def test_the_wrong_kind_of_access_names_the_right_one(source: Source) -> None:
    with pytest.raises(InvalidTask, match="`for` over results in an `async def`") as error:
        list(asynchronous(source))
    assert "async for" in error.value.hint
    with pytest.raises(InvalidTask, match=r"`results\[…\]`"):
        asynchronous(source)[0]
    with pytest.raises(InvalidTask, match="`async for` over results in a plain handler"):
        aiter(plain(source))
    with pytest.raises(InvalidTask, match=r"await results\.at"):
        asyncio.run(plain(source).at(0))


def test_results_of_a_list_serve_both_kinds_of_handlers() -> None:
    results = Results(["a", "b"])

    async def use() -> Any:
        return [text async for text in results], await results.at(1), await results.all()

    assert list(results) == ["a", "b"]
    assert asyncio.run(use()) == (["a", "b"], "b", ["a", "b"])
    assert results == Results(["a", "b"])
    assert results != Results(["a"])
    assert repr(results) == "<2 results>"


def test_the_type_of_an_item_is_found() -> None:
    assert item_type(Results[int]) is int
    assert item_type(Results) is Any
    assert item_type(list[int]) is None
