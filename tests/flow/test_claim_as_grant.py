"""What a claim has charged serves the first call of its job, if that takes no more."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk


def ask(desk: Desk, tokens: int) -> Any:
    """Claim a job that was charged 100 tokens, and ask for so many within it."""
    desk.limit("api", tokens_per_minute=500).task("api", cost={"tokens": 100})
    desk.enqueue(1)
    (attempt,) = desk.claim()
    return desk.worker.connection.execute(
        "select granted, grant_id, reason from trunkline.acquire('api', %s,"
        " p_job => %s, p_attempt => %s)",
        (Jsonb({"tokens": tokens}), attempt.job, attempt.number),
    ).fetchone()


@pytest.mark.parametrize(("tokens", "charged"), [(0, 100), (60, 100), (100, 100), (300, 300)])
def test_a_call_is_charged_once_and_for_all_it_takes(desk: Desk, tokens: int, charged: int) -> None:
    granted, grant, reason = ask(desk, tokens)
    assert (granted, reason) == (True, None)
    assert desk.bucket("api")["tokens_of_minute"] == charged
    assert desk.worker.value("select trunkline.settle(%s, '{\"tokens\": 7}')", grant) == "settled"
    assert desk.bucket("api")["tokens_of_minute"] == 7


def test_more_than_its_claim_took_needs_room(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=500)
    desk.operator.value("select trunkline.acquire('api', '{\"tokens\": 250}')")
    granted, _, reason = ask(desk, 300)
    assert (granted, reason) == (False, "tokens_per_minute")
    # The charge of the claim was given back: its call is still to come.
    assert desk.bucket("api")["tokens_of_minute"] == 250
