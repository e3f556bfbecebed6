"""Any sequence of calls around a limit: nothing is ever over, what fits is given, slots return.

``TRUNKLINE_PROPERTY_EXAMPLES`` asks for another number of examples, drawn anew at every run.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.flow.conftest import Desk
from tests.property.limiter_machine import LimiterMachine
from tests.property.still import still_desk
from tests.support.servers import Server

EXAMPLES = int(os.environ.get("TRUNKLINE_PROPERTY_EXAMPLES", "0"))


@pytest.fixture
def desk(server: Server, template: str) -> Iterator[Desk]:
    with still_desk(server, template) as found:
        found.operator.value("select trunkline.set_setting('reclaim_jitter', '0 seconds')")
        found.operator.value("select trunkline.set_setting('max_immediate_releases', '1000')")
        found.limit("doc/{key}", concurrency=1)
        found.task("api", "doc/{key}", task="keyed", max_attempts=100)
        yield found


def test_any_sequence_of_calls_keeps_to_the_limit(desk: Desk) -> None:
    run_state_machine_as_test(
        lambda: LimiterMachine(desk),  # type: ignore[arg-type]
        settings=settings(
            max_examples=EXAMPLES or 100,
            stateful_step_count=30,
            deadline=None,
            database=None,
            derandomize=not EXAMPLES,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
