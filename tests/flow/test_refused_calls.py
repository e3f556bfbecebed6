"""A call that its provider refused took nothing, and nothing is learned from it."""

from tests.flow.conftest import Desk
from tests.support.internals import usage


def test_what_took_nothing_teaches_nothing(desk: Desk) -> None:
    """RF-59: the first call that took something sets the estimate."""
    desk.limit("api", tokens_per_minute=1000).task("api")
    desk.enqueue(1)
    (attempt,) = desk.claim()
    for tokens, estimates in ((0, []), (300, [(300, 0)])):
        grant = desk.worker.value(
            "select grant_id from trunkline.acquire('api', '{\"tokens\": 500}',"
            " p_job => %s, p_attempt => %s)",
            attempt.job,
            attempt.number,
        )
        desk.worker.value(
            "select trunkline.settle(%s, jsonb_build_object('tokens', %s::int))", grant, tokens
        )
        assert usage.estimates(desk.behind) == estimates
    assert desk.bucket("api")["tokens_of_minute"] == 300
