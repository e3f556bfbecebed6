"""A busy queue for one claimer: producers that commit late, a long writing transaction, rollbacks.

Delays here are part of the scene (a slow producer), never a way to wait for something.
"""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from tests.support.calls import Calls, Position
from tests.support.databases import Database
from tests.support.internals import jobs
from tests.support.waiting import until

__all__ = ["Outcome", "Scene", "naive", "play"]

PRODUCERS = 12
LATEST_COMMIT = 0.1


@dataclass(frozen=True, slots=True)
class Scene:
    """How long, which lanes, and what else goes on."""

    seconds: float
    priorities: tuple[int, ...] = (0,)
    delays: tuple[str, ...] = ("0",)
    rolled_back_claims: bool = False
    limit: int = 20
    new_lane: int | None = None


@dataclass(slots=True)
class Outcome:
    """What was committed, what the claimer got, and what rolled-back claims had touched."""

    committed: set[UUID] = field(default_factory=set)
    claimed: list[UUID] = field(default_factory=list)
    touched: set[UUID] = field(default_factory=set)
    position: Position = field(default_factory=dict)
    claims: int = 0

    @property
    def missing(self) -> set[UUID]:
        return self.committed - set(self.claimed)


def naive(position: Position) -> Position:
    """Do what loses jobs: take over at once what this claim covered."""
    lanes = {
        name: [lane[1] if len(lane) > 1 else lane[0]] for name, lane in position["lanes"].items()
    }
    return {"for": position["for"], "lanes": lanes}


def play(
    database: Database, scene: Scene, adjust: Callable[[Position], Position] = lambda p: p
) -> Outcome:
    """Let everybody work for the scene's time, then let the claimer come to rest."""
    outcome = Outcome()
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=PRODUCERS + 3) as pool:
        crew: list[Future[Any]] = [
            pool.submit(_produce, database, scene, outcome, stop, seed) for seed in range(PRODUCERS)
        ]
        crew.append(pool.submit(_write_long, database, scene, outcome, stop))
        if scene.rolled_back_claims:
            crew.append(pool.submit(_claim_in_vain, database, outcome, stop))
        over = threading.Event()
        claimer = pool.submit(_claim, database, scene, outcome, over, adjust)
        try:
            stop.wait(scene.seconds)
        finally:
            stop.set()
            for member in crew:
                member.result(60)
            until(lambda: _all_due(database), "no job is due later")
            over.set()
        claimer.result(60)
    return outcome


def _all_due(database: Database) -> bool:
    with psycopg.connect(database.superuser_dsn) as superuser:
        return jobs.all_due(superuser)


def _produce(
    database: Database, scene: Scene, outcome: Outcome, stop: threading.Event, seed: int
) -> None:
    rng = random.Random(seed)
    calls = Calls(database.connect("trunkline_producer", autocommit=False))
    began = time.monotonic()
    while not stop.is_set():
        priorities = scene.priorities
        if scene.new_lane is not None and time.monotonic() - began > scene.seconds / 2:
            priorities = (*priorities, scene.new_lane)
        made = [
            calls.enqueue(priority=rng.choice(priorities), delay=rng.choice(scene.delays)).job_id
            for _ in range(rng.randint(1, 3))
        ]
        stop.wait(rng.random() * LATEST_COMMIT)
        if rng.random() < 0.1:
            calls.connection.rollback()
        else:
            calls.connection.commit()
            outcome.committed.update(made)


def _write_long(database: Database, scene: Scene, outcome: Outcome, stop: threading.Event) -> None:
    """One transaction that writes at its start, in its middle and at its end."""
    calls = Calls(database.connect("trunkline_producer", autocommit=False))
    made = []
    for pause in (scene.seconds / 2, scene.seconds, 0.0):
        made += [calls.enqueue(priority=priority).job_id for priority in scene.priorities]
        stop.wait(pause)
    calls.connection.commit()
    outcome.committed.update(made)


def _claim_in_vain(database: Database, outcome: Outcome, stop: threading.Event) -> None:
    rng = random.Random(99)
    calls = Calls(database.connect("trunkline_worker", autocommit=False))
    while not stop.is_set():
        outcome.touched.update(calls.claim("vain", 2).jobs)
        stop.wait(rng.random() * 0.02)
        calls.connection.rollback()
        stop.wait(0.01)


def _claim(
    database: Database,
    scene: Scene,
    outcome: Outcome,
    over: threading.Event,
    adjust: Callable[[Position], Position],
) -> None:
    """Claim from a kept position without a full look; a few times more once all is committed."""
    calls = Calls(database.connect("trunkline_worker"))
    more = 5
    while more:
        ending = over.is_set()
        claim = calls.claim("claimer", scene.limit, position=outcome.position)
        assert claim.position is not None
        outcome.claims += 1
        outcome.claimed += claim.jobs
        outcome.position = adjust(claim.position)
        if not claim.rows:
            more -= ending
            over.wait(0.002)
