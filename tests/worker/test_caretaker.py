"""Duties without a worker. `tests/cli/test_worker_and_up.py` runs them as a process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support import newer
from tests.worker.scene import Scene, eventually
from trunkline.db.call import Call
from trunkline.db.lasting import LastingConnection
from trunkline.errors import ConnectionLost, SchemaNewerThanClient
from trunkline.schema import CONTRACT
from trunkline.worker.caretaker import Caretaker


async def test_after_an_outage_the_caretaker_waits_for_two_pulses(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it takes the jobs of every worker, because all pulses are old by then."""
    scene.superuser.execute("select trunkline.set_setting('pulse_interval', '50 s')")
    original = LastingConnection.run
    steps: list[str | float] = []

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        if "trunkline.run_duties" in call.sql:
            steps.append("run")
            if steps.count("run") == 2:
                raise ConnectionLost("the server is away")
        return await original(self, call, **more)

    async def pause(_self: Caretaker, seconds: float) -> None:
        steps.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(LastingConnection, "run", run)
    monkeypatch.setattr(Caretaker, "pause", pause)
    caretaker = Caretaker(scene.database.dsn)
    caretaker.start()
    await eventually(lambda: steps.count("run") >= 3, "it goes on")
    await caretaker.stop()
    second, third = [place for place, step in enumerate(steps) if step == "run"][1:3]
    assert 101 in steps[second:third]


async def test_under_a_schema_that_is_too_new_the_caretaker_stops(scene: Scene) -> None:
    newer.apply_contract(scene.superuser, oldest=CONTRACT + 1)
    caretaker = Caretaker(scene.database.dsn)
    caretaker.start()
    await eventually(caretaker.stopping.is_set, "it stops")
    await caretaker.stop()
    assert isinstance(caretaker.outdated, SchemaNewerThanClient)
    assert f"trunkline>={newer.RELEASE}" in caretaker.outdated.hint
