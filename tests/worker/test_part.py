"""The base of all parts: starting, stopping, and going on after errors."""

import asyncio
import random
from collections.abc import Callable

import pytest

from tests.worker.scene import DEADLINE, eventually, timed
from trunkline.errors import (
    ConnectionLost,
    DatabaseUnreachable,
    InvalidTask,
    ServerNotReady,
    TooManyConnections,
)
from trunkline.worker.part import Part, pause_after_error


class Counting(Part):
    """Counts its turns; a turn may be told what to raise."""

    name = "counting"

    def __init__(self, act: Callable[[int], None] = lambda _turn: None) -> None:
        super().__init__()
        self.turns = 0
        self.closed = 0
        self.pauses: list[float] = []
        self._act = act

    async def turn(self) -> None:
        self.turns += 1
        self._act(self.turns)
        await asyncio.sleep(0)

    async def close(self) -> None:
        self.closed += 1


class Waiting(Part):
    """Waits for something long in each turn, and notes how that ended."""

    name = "waiting"

    def __init__(self) -> None:
        super().__init__()
        self.dropped = False
        self.began = asyncio.Event()

    async def turn(self) -> None:
        await self.unless_stopping(self._long())

    async def _long(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.dropped = True
            raise


async def test_starting_twice_runs_once() -> None:
    part = Counting()
    part.start()
    part.start()
    await eventually(lambda: part.turns > 3, "it turns")
    running = [task for task in asyncio.all_tasks() if task.get_name() == "trunkline counting"]
    assert len(running) == 1
    await part.stop()


async def test_stopping_twice_and_at_once_is_fine() -> None:
    part = Counting()
    part.start()
    await eventually(lambda: part.turns, "it turns")
    await asyncio.gather(part.stop(), part.stop())
    await part.stop()
    turns = part.turns
    await asyncio.sleep(0)
    assert part.turns == turns


async def test_stopping_what_never_started_is_fine() -> None:
    part = Counting()
    await part.stop()
    assert (part.turns, part.closed) == (0, 1)


async def test_what_was_stopped_before_its_start_does_no_turn() -> None:
    part = Counting()
    await part.stop()
    part.start()
    await part.stop()
    assert part.turns == 0


async def test_starting_and_stopping_in_any_order_never_hangs_or_leaks() -> None:
    """A storm of starts and stops from many tasks at once, over and over."""
    order = random.Random(7)
    for _ in range(150):
        part = Waiting()

        async def hammer(part: Part, calls: list[str]) -> None:
            for call in calls:
                if call == "start":
                    part.start()
                else:
                    await part.stop()
                await asyncio.sleep(0)

        storms = [order.choices(["start", "stop"], k=5) for _ in range(4)]
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*(hammer(part, calls) for calls in storms))
            await part.stop()
        left = [task for task in asyncio.all_tasks() if task.get_name() == "trunkline waiting"]
        assert left == []


async def test_a_long_wait_is_dropped_when_the_part_is_to_stop() -> None:
    part = Waiting()
    part.start()
    await part.began.wait()
    await part.stop()
    assert part.dropped


async def test_a_pause_ends_with_the_part() -> None:
    class Pausing(Part):
        name = "pausing"

        async def turn(self) -> None:
            await self.pause(3600)

    part = Pausing()
    part.start()
    await asyncio.sleep(0)
    # Only the end of the pause ends this: an hour is longer than any test may take.
    await part.stop()


@pytest.mark.parametrize("error", [ValueError("?"), InvalidTask("?"), OSError("?")])
def test_after_an_unknown_error_it_waits_ten_seconds(error: Exception) -> None:
    """TA-35."""
    assert [pause_after_error(error, count) for count in (1, 2, 50)] == [10, 10, 10]


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("?"),
        DatabaseUnreachable("?"),
        ServerNotReady("?"),
        TooManyConnections("?"),
    ],
)
def test_an_absent_server_is_asked_often(error: Exception) -> None:
    """Work must go on within ten seconds of its return; workers do not come back in step."""
    first = [pause_after_error(error, 1) for _ in range(200)]
    later = [pause_after_error(error, 100) for _ in range(200)]
    assert 0.1 < min(first) < max(first) < 0.3
    assert 2.0 < min(later) < max(later) < 4.0


async def test_an_error_is_logged_waited_out_and_survived(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """TA-35: wait, and continue."""
    monkeypatch.setattr("trunkline.worker.part._OTHER_PAUSE", 0.05)

    def act(turn: int) -> None:
        if turn == 2:
            raise ValueError("a turn failed")

    part = Counting(act)
    stopwatch = timed()
    part.start()
    await eventually(lambda: part.turns > 3, "it goes on")
    await part.stop()
    assert stopwatch() >= 0.05
    assert "counting failed" in caplog.text
    assert "a turn failed" in caplog.text
    assert "counting continues after 1 error" in caplog.text


async def test_repeated_errors_are_logged_ever_less_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline.worker.part._FIRST_PAUSE", 0.0)

    def act(turn: int) -> None:
        if turn <= 100:
            raise ConnectionLost("gone")

    part = Counting(act)
    part.start()
    await eventually(lambda: part.turns > 100, "the row is over")
    await part.stop()
    told = [record for record in caplog.records if "gone" in record.getMessage()]
    assert [getattr(record, "errors", 0) for record in told] == [1, 2, 4, 8, 16, 32, 64]
    assert all("connection_lost" in record.getMessage() for record in told)
    assert all(record.exc_info is None for record in told)


async def test_a_part_stops_at_once_while_it_waits_out_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.worker.part._OTHER_PAUSE", 3600.0)

    def act(_turn: int) -> None:
        raise ValueError("every time")

    part = Counting(act)
    part.start()
    await eventually(lambda: part.turns, "it failed")
    await part.stop()
    assert part.turns == 1
