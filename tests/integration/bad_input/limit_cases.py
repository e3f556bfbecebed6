"""Bad calls about limits, by the refusal that they get."""

from typing import Final

from tests.integration.bad_input.calling import (
    NOBODY,
    OPERATOR,
    PRODUCER,
    WORKER,
    by,
    enqueue,
    many,
)

__all__ = ["LIMIT_CALLS"]

LIMIT_CALLS: Final[dict[str, list[tuple[str, str]]]] = {
    "unknown_limit": [
        *by(PRODUCER, "trunkline.enqueue(p_task => 'lost')"),
        *many('{"task": "lost"}'),
        *by(
            WORKER,
            "trunkline.acquire('nowhere')",
            """trunkline.acquire('nowhere/{model}', p_keys => '{"model": "a"}')""",
            """trunkline.observe_limit('nowhere', '{"retry_after": 1}')""",
        ),
        *by(OPERATOR, "trunkline.reset_breaker('nothing')", "trunkline.trip_breaker(null)"),
    ],
    "limit_key_missing": [
        *by(
            PRODUCER,
            "trunkline.enqueue(p_task => 'keyed')",
            """trunkline.enqueue(p_task => 'keyed', p_payload => '{"model": ""}')""",
            "trunkline.enqueue('keyed', jsonb_build_object('model', repeat('x', 400)))",
        ),
        *many('{"task": "keyed"}'),
        *by(
            WORKER,
            "trunkline.acquire('model/{model}')",
            """trunkline.acquire('model/{model}', p_keys => '{"model": null}')""",
            "trunkline.observe_limit('model/{model}', '{}')",
        ),
    ],
    "invalid_cost": [
        *enqueue("""p_cost => '{"tokens": 1}'"""),
        *by(
            PRODUCER,
            """trunkline.enqueue(p_task => 'limited', p_cost => '{"tokens": -1}')""",
            """trunkline.enqueue(p_task => 'limited', p_cost => '{"tokens": "7"}')""",
            """trunkline.enqueue(p_task => 'limited', p_cost => '{"tokens": 1.0}')""",
            """trunkline.enqueue(p_task => 'limited', p_cost => '[1]')""",
        ),
        *many('{"task": "limited", "cost": {"pages": 1}}'),
        *many('{"task": "limited", "cost": {"tokens": 1.0}}'),
        *by(
            WORKER,
            "trunkline.acquire('api', null)",
            "trunkline.acquire('api', '[]')",
            """trunkline.acquire('api', '{"tokens": -1}')""",
            """trunkline.acquire('api', '{"tokens": 1.5}')""",
            """trunkline.acquire('api', '{"tokens": 1.0}')""",
            """trunkline.acquire('api', '{"units": "7"}')""",
            """trunkline.acquire('api', '{"pages": 1}')""",
            f"""trunkline.settle({NOBODY}, '{{"tokens": -1}}')""",
            f"""trunkline.settle({NOBODY}, '{{"tokens": 1e13}}')""",
            f"""trunkline.settle({NOBODY}, '{{"cost": "free"}}')""",
            f"""trunkline.settle({NOBODY}, '{{"cost": -0.01}}')""",
            f"trunkline.settle({NOBODY}, '[]')",
            """trunkline.settle_job(<running>, 1, '{"units": -1}')""",
            """trunkline.settle_job(<running>, 1, '{"pages": 1}')""",
            "trunkline.settle_job(<running>, 1, '3')",
        ),
    ],
    "cost_over_limit": [
        *by(PRODUCER, """trunkline.enqueue(p_task => 'limited', p_cost => '{"tokens": 1001}')"""),
        *many('{"task": "limited", "cost": {"tokens": 1001}}'),
        *by(WORKER, """trunkline.acquire('api', '{"tokens": 1001}')"""),
    ],
    "limit_queue_full": [
        *by(
            PRODUCER,
            "trunkline.enqueue(p_task => 'crowded')",
            "trunkline.enqueue_batch('crowded', '[{}]')",
        ),
        *many('{"task": "crowded"}', '{"task": "crowded", "unique_key": "fresh"}'),
    ],
    "quota_spent": [
        *by(
            PRODUCER,
            "trunkline.enqueue(p_task => 'broke')",
            "trunkline.enqueue_batch('broke', '[{}]')",
        ),
        *many('{"task": "broke"}', '{"task": "broke", "idempotency_key": "fresh"}'),
    ],
}
