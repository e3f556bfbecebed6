"""Ends of attempts that the server refuses for a reason of its own, or whose burial is cut off."""

from typing import Any

import pytest

from tests.worker.scene import Scene
from tests.worker.test_completer import recording
from trunkline.db.call import Call
from trunkline.db.lasting import LastingConnection
from trunkline.errors import ConnectionLost, SchemaForbidden, SchemaMissing, TrunklineError
from trunkline.worker.report import End, Report


def failing(
    monkeypatch: pytest.MonkeyPatch, function: str, error: TrunklineError, times: int
) -> list[TrunklineError]:
    """Let the next calls of this function fail; returns what was raised."""
    original = LastingConnection.run
    raised: list[TrunklineError] = []

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        if function in call.sql and len(raised) < times:
            raised.append(error)
            raise error
        return await original(self, call, **more)

    monkeypatch.setattr(LastingConnection, "run", run)
    return raised


@pytest.mark.parametrize("error", [SchemaMissing("gone"), SchemaForbidden("not allowed")])
async def test_an_end_waits_until_the_schema_takes_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: TrunklineError
) -> None:
    """During an upgrade, say: the connection is refused, and not what is said over it."""
    monkeypatch.setattr("trunkline.worker.part._OTHER_PAUSE", 0.01)
    raised = failing(monkeypatch, "trunkline.complete(", error, 3)
    async with recording(scene, start=False) as desk:
        jobs = desk.claim(2)
        desk.add(*(Report(job, End.COMPLETE) for job in jobs))
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states(jobs) == ["completed", "completed"]
    assert len(raised) == 3


async def test_a_refused_end_becomes_a_failure_although_the_connection_breaks(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = failing(monkeypatch, "trunkline.fail(", ConnectionLost("gone"), 2)
    async with recording(scene, start=False) as desk:
        (bad,) = desk.claim(1)
        desk.add(Report(bad, End.COMPLETE, result="no json"))
        desk.completer.start()
        await desk.completer.drained()
        assert desk.states([bad]) == ["dead"]
        assert len(desk.roster) == 0
    assert len(raised) == 2
