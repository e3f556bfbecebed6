"""Any sequence of calls keeps the invariants of the queue.

One database for the whole run, emptied between examples. ``TRUNKLINE_PROPERTY_EXAMPLES`` asks for
another number of examples, drawn anew at every run.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.queue_machine import QueueMachine
from tests.support import databases, guard
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.servers import Server

EXAMPLES = int(os.environ.get("TRUNKLINE_PROPERTY_EXAMPLES", "0"))


@pytest.fixture(scope="module")
def bench(server: Server, template: str) -> Iterator[Database]:
    with databases.fresh(server, template) as database:
        guard.install(database)
        database.move_time("0")
        superuser = Calls(database.superuser())
        superuser.value("select trunkline.set_setting('reclaim_jitter', '0')")
        yield database


def test_any_sequence_of_calls_keeps_the_invariants(bench: Database) -> None:
    """Invariants 1, 2, 3 and 5, with the guard of legal transitions installed."""
    roles = ("producer", "worker", "operator")
    connections = {role: bench.connect(f"trunkline_{role}") for role in roles}
    connections["superuser"] = bench.superuser()
    run_state_machine_as_test(
        lambda: QueueMachine(connections),  # type: ignore[arg-type]
        settings=settings(
            max_examples=EXAMPLES or 60,
            stateful_step_count=30,
            deadline=None,
            database=None,
            derandomize=not EXAMPLES,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
