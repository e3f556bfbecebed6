"""Workers before a provider that breaks and comes back."""

import asyncio
import time
from itertools import pairwise

from tests.support.internals import rows
from tests.worker.scene import Scene, eventually
from trunkline import Backoff


async def test_a_broken_provider_is_left_alone_until_a_probe_succeeds(scene: Scene) -> None:
    """RF-85, RF-86, RF-130: one call at a time while it is down, all of them once it is up."""
    scene.value(
        "select trunkline.set_limit('api',"
        """ '{"breaker_failures": 5, "breaker_probe_after": "1 second"}')"""
    )
    state = "select state from trunkline.breakers"
    calls: list[float] = []
    down = True

    @scene.app.task(limit="api", max_attempts=100, backoff=Backoff(base=600))
    async def call() -> None:
        calls.append(time.monotonic())
        if down:
            # Longer than a report takes, or many would be claimed before the first is known.
            await asyncio.sleep(0.1)
            raise ConnectionError("nobody answers")

    jobs = await scene.enqueue("call", 200)
    async with scene.working(concurrency=4), scene.working(concurrency=4):
        await eventually(lambda: scene.value(state) == "open", "it opened")
        await eventually(
            lambda: rows.count(scene.superuser, "running") == 0, "what had started ended"
        )
        before = len(calls)
        # How many began before the breaker heard of the first depends on the machine.
        assert 5 <= before < 180

        def probes() -> list[float]:
            """What was called after a second of nothing: a claim under way may be late."""
            late = calls[before - 1 :]
            pauses = [at for at, pair in enumerate(pairwise(late)) if pair[1] - pair[0] > 0.9]
            return late[pauses[0] + 1 :] if pauses else []

        await eventually(lambda: len(probes()) >= 3, "three probes")
        # A second each, by the engine's clock and from the end of the last.
        assert all(later - sooner > 0.9 for sooner, later in pairwise(probes()[:3]))
        down = False
        waiting = "select count(*) from trunkline.jobs where state = 'ready'"
        await eventually(lambda: scene.value(waiting) == 0, "all that was held was claimed")
        await eventually(lambda: scene.value(state) == "closed", "it closed")
    failed = "select count(*) from trunkline.jobs where failures > 0 and finished_at is null"
    done = "select count(*) from trunkline.jobs where state = 'completed'"
    assert scene.value(failed) + scene.value(done) == len(jobs)
    assert len(calls) == len(jobs)
