"""Any sequence of calls keeps the invariants of the queue.

One database for the whole run, emptied between examples. ``TRUNKLINE_PROPERTY_EXAMPLES`` asks for
another number of examples, drawn anew at every run.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.queue_machine import QueueMachine
from tests.property.queue_steps import QueueSteps
from tests.property.queue_walk import Walk
from tests.support import databases, guard
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.servers import Server

# What a run must have met, or it proved nothing.
MET = {
    *("enqueue new", "enqueue duplicate", "claim in full", "claim from a position"),
    *("complete to completed", "complete to cancelled", "complete lost", "complete already"),
    *("fail to waiting", "fail to dead", "fail lost", "snooze to waiting", "snooze lost"),
    *("release to waiting", "release lost", "acknowledge_cancel to cancelled"),
    *("suspend to waiting", "suspend to cancelled", "suspend lost"),
    *("heartbeat ok", "heartbeat cancel", "reclaim to waiting", "reclaim to dead"),
    *("reclaim from the dead", "cancel done", "retry done", "retry again"),
    *("retry of a dead letter", "retry TL018", "retry TL019", "discard done"),
    *("reprioritise done", "reprioritise TL019"),
}
EXAMPLES = int(os.environ.get("TRUNKLINE_PROPERTY_EXAMPLES", "0"))


@pytest.fixture(scope="module")
def bench(server: Server, template: str) -> Iterator[Database]:
    with databases.fresh(server, template) as database:
        guard.install(database)
        database.move_time("0")
        superuser = Calls(database.superuser())
        superuser.value("select trunkline.set_setting('reclaim_jitter', '0')")
        yield database


@pytest.fixture(scope="module")
def connections(bench: Database) -> dict[str, psycopg.Connection[Any]]:
    roles = ("producer", "worker", "operator")
    found = {role: bench.connect(f"trunkline_{role}") for role in roles}
    return found | {"superuser": bench.superuser()}


def test_any_walk_keeps_the_invariants(connections: dict[str, psycopg.Connection[Any]]) -> None:
    """Invariants 1, 2, 3 and 5, by chance: every seed is a walk of its own."""
    first = random.SystemRandom().randrange(2**32) if EXAMPLES else 0
    seen: Counter[str] = Counter()
    for seed in range(first, first + (EXAMPLES or 40)):
        steps = QueueSteps(connections)
        steps.register()
        walk = Walk(steps, seed)
        for number in range(70):
            try:
                walk.step()
            except (AssertionError, psycopg.Error) as error:
                error.add_note(f"step {number} of the walk from seed {seed}")
                raise
        seen.update(steps.seen)
    missed = MET - set(+seen)
    assert not missed


def test_any_sequence_of_calls_keeps_the_invariants(
    connections: dict[str, psycopg.Connection[Any]],
) -> None:
    """Invariants 1, 2, 3 and 5, by rules: Hypothesis makes the shortest story of a failure."""
    run_state_machine_as_test(
        lambda: QueueMachine(connections),  # type: ignore[arg-type]
        settings=settings(
            max_examples=EXAMPLES or 40,
            stateful_step_count=30,
            deadline=None,
            database=None,
            derandomize=not EXAMPLES,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
