"""For every refusal, calls that bring it about: (role, statement), jobs named as <state>."""

from __future__ import annotations

from typing import Final

__all__ = ["CALLS"]

_PRODUCER, _WORKER, _OPERATOR = "trunkline_producer", "trunkline_worker", "trunkline_operator"
_NOBODY = "'00000000-0000-7000-8000-000000000000'::uuid"
_LARGE = "jsonb_build_object('x', repeat('y', 262144))"
_MINE = "p_worker => 'w', p_jobs => array[<running>], p_attempts => '{1}'"
_LONG = "repeat('x', 201)"


def _enqueue(*arguments: str) -> list[tuple[str, str]]:
    return [(_PRODUCER, f"trunkline.enqueue(p_task => 'known', {given})") for given in arguments]


def _by(role: str, *calls: str) -> list[tuple[str, str]]:
    return [(role, call) for call in calls]


def _many(*jobs: str) -> list[tuple[str, str]]:
    """Batches with a good job before the bad one: neither may be kept."""
    good = '{"task": "known"}'
    return [
        (_PRODUCER, f"trunkline.enqueue_many(p_jobs => '[{good}, {job}, {good}]')") for job in jobs
    ]


CALLS: Final[dict[str, list[tuple[str, str]]]] = {
    "unknown_task": [
        *_by(_PRODUCER, "trunkline.enqueue(p_task => 'nope')"),
        *_many('{"task": "nope"}', '{"task": "nope", "unique_key": "fresh"}'),
        *_by(_OPERATOR, "trunkline.set_schedule('s', '@daily', 'nope')"),
    ],
    "payload_not_object": [
        *_enqueue("p_payload => '[1]'", "p_payload => '1'", "p_payload => null"),
        *_many('{"task": "known", "payload": 3}'),
    ],
    "payload_too_large": [
        *_enqueue(f"p_payload => {_LARGE}"),
        *_by(_WORKER, f"trunkline.complete({_MINE}, p_results => array[{_LARGE}])"),
    ],
    "negative_delay": [
        *_enqueue("p_delay => '-1 second'"),
        *_many('{"task": "known", "delay": "-1 second"}'),
        *_by(
            _WORKER,
            f"trunkline.snooze({_MINE}, p_delays => '{{-1 second}}')",
            f"trunkline.fail({_MINE}, p_delays => '{{-1 second}}')",
        ),
    ],
    "priority_out_of_range": [
        *_enqueue("p_priority => 50", "p_priority => -51"),
        *_many('{"task": "known", "priority": 50}'),
        *_by(
            _PRODUCER,
            "trunkline.reprioritise(p_job => <ready>, p_priority => 50)",
            "trunkline.reprioritise(p_job => <ready>, p_priority => null)",
            "trunkline.register_task(p_task => 'known', p_priority => -51)",
            """trunkline.register_tasks('[{"task": "known", "priority": 50}]')""",
        ),
    ],
    "limit_out_of_range": [
        *_by(
            _WORKER,
            "trunkline.claim(p_worker => 'w', p_limit => 0)",
            "trunkline.claim(p_worker => 'w', p_limit => 10001)",
            "trunkline.claim(p_worker => 'w', p_limit => null)",
            "trunkline.promote(p_limit => 0)",
            "trunkline.reclaim(p_limit => 0)",
            "trunkline.run_schedules(p_limit => 0)",
            "trunkline.sweep_gates(p_limit => 0)",
            "trunkline.sweep_idempotency(p_limit => 0)",
            "trunkline.progress('w', <running>, 1, p_percent => 101)",
        ),
        *_by(_OPERATOR, "trunkline.limit_queue(p_queue => 'q', p_max_depth => 0)"),
        *_by(
            _PRODUCER,
            "trunkline.next_due(p_cron => '@daily', p_count => 0)",
            "trunkline.list_jobs(p_limit => 0)",
            "trunkline.list_jobs(p_limit => 1001)",
            "trunkline.list_jobs(p_limit => null)",
        ),
    ],
    "worker_required": _by(
        _WORKER,
        "trunkline.claim(p_worker => null)",
        "trunkline.claim(p_worker => '')",
        f"trunkline.claim(p_worker => {_LONG})",
        "trunkline.register_worker(p_worker => '')",
        "trunkline.sleep(p_worker => '')",
        "trunkline.sleep(p_worker => null)",
        "trunkline.release_forgotten(p_worker => '', p_known => '{}')",
        "trunkline.heartbeat(p_worker => null, p_jobs => '{}', p_attempts => '{}')",
        "trunkline.complete(p_worker => '', p_jobs => '{}', p_attempts => '{}')",
        "trunkline.fail(p_worker => '', p_jobs => '{}', p_attempts => '{}')",
        "trunkline.release(p_worker => '', p_jobs => '{}', p_attempts => '{}')",
        "trunkline.snooze(p_worker => '', p_jobs => '{}', p_attempts => '{}')",
        "trunkline.acknowledge_cancel(p_worker => '', p_jobs => '{}', p_attempts => '{}')",
    ),
    "array_length_mismatch": _by(
        _WORKER,
        "trunkline.complete(p_worker => 'w', p_jobs => array[<running>], p_attempts => '{}')",
        "trunkline.complete(p_worker => 'w', p_jobs => array[<running>], p_attempts => null)",
        "trunkline.complete(p_worker => 'w', p_jobs => null, p_attempts => null)",
        "trunkline.complete(p_worker => 'w', p_jobs => array[<running>], p_attempts => '{null}')",
        f"trunkline.complete({_MINE}, p_results => array['1', '2']::jsonb[])",
        f"trunkline.fail({_MINE}, p_errors => array['{{}}', '{{}}']::jsonb[])",
        f"trunkline.fail({_MINE}, p_retryable => '{{}}')",
        f"trunkline.snooze({_MINE}, p_delays => '{{1 s, 2 s}}')",
        f"trunkline.acknowledge_cancel({_MINE}, p_reasons => '{{a, b}}')",
        "trunkline.heartbeat('w', p_jobs => array[<running>, null], p_attempts => '{1, 1}')",
        "trunkline.release(p_worker => 'w', p_jobs => array[<running>], p_attempts => '{1, 2}')",
        "trunkline.progress('w', null, 1)",
    ),
    "stale_attempt": _by(
        _WORKER,
        "trunkline.complete('w', array[<running>], '{7}', p_strict => true)",
        "trunkline.complete('ghost', array[<running>], '{1}', p_strict => true)",
        "trunkline.complete('w', array[<running>, <dead>], '{1, 1}', p_strict => true)",
        "trunkline.acquire('api', p_job => <running>, p_attempt => 7)",
        "trunkline.acquire('api', p_job => <ready>, p_attempt => 1)",
        f"trunkline.acquire('api', p_job => {_NOBODY}, p_attempt => 1)",
    ),
    "queue_paused": [
        *_enqueue("p_queue => 'closed'"),
        *_many('{"task": "known", "queue": "closed"}'),
    ],
    "queue_full": [*_enqueue("p_queue => 'full'"), *_many('{"task": "known", "queue": "full"}')],
    "invalid_cron": [
        *_by(
            _OPERATOR,
            "trunkline.set_schedule('s', 'x', 'known')",
            "trunkline.set_schedule('s', '61 * * * *', 'known')",
            "trunkline.set_schedule('s', '0 0 30 2 *', 'known')",
            "trunkline.set_schedule('s', null, 'known')",
        ),
        *_by(_PRODUCER, "trunkline.next_due(p_cron => '* * * *')"),
    ],
    "unknown_job": [
        *_by(_PRODUCER, f"trunkline.cancel({_NOBODY})", f"trunkline.reprioritise({_NOBODY}, 1)"),
        *_by(_PRODUCER, f"trunkline.explain({_NOBODY})"),
        *_by(
            _OPERATOR,
            f"trunkline.retry({_NOBODY})",
            f"trunkline.discard({_NOBODY})",
            f"trunkline.acknowledge({_NOBODY})",
            "trunkline.retry(null)",
        ),
    ],
    "unique_key_held": _by(_OPERATOR, "trunkline.retry(<dead>)"),
    "wrong_state": [
        *_by(
            _OPERATOR,
            "trunkline.retry(<running>)",
            "trunkline.retry(<ready>)",
            "trunkline.discard(<ready>)",
            "trunkline.discard(<completed>)",
            "trunkline.acknowledge(<running>)",
        ),
        *_by(
            _PRODUCER,
            "trunkline.reprioritise(<running>, 3)",
            "trunkline.reprioritise(<completed>, 3)",
            "trunkline.reprioritise(<dead>, 3)",
        ),
    ],
    "unknown_setting": _by(_OPERATOR, "trunkline.set_setting('nope', '1')"),
    "invalid_setting": _by(
        _OPERATOR,
        "trunkline.set_setting('lease', 'soon')",
        "trunkline.set_setting('lease', '1 second')",
        "trunkline.set_setting('heartbeat_interval', '200 seconds')",
        "trunkline.set_setting('crash_limit', '0')",
        "trunkline.set_setting('crash_limit', 'many')",
        "trunkline.set_setting('claims_enabled', 'perhaps')",
        "trunkline.set_setting('tenant_claim', '')",
    ),
    "invalid_policy": _by(
        _PRODUCER,
        "trunkline.register_task(p_task => '')",
        "trunkline.register_task(p_task => null)",
        f"trunkline.register_task(p_task => {_LONG})",
        "trunkline.register_task(p_task => 'new', p_queue => '')",
        "trunkline.register_task(p_task => 'new', p_lease => '0')",
        "trunkline.register_task(p_task => 'new', p_hard_limit => '0')",
        "trunkline.register_task(p_task => 'new', p_max_attempts => 0)",
        "trunkline.register_task(p_task => 'new', p_backoff => '3')",
        """trunkline.register_task(p_task => 'new', p_backoff => '{"base": -1}')""",
        """trunkline.register_task(p_task => 'new', p_backoff => '{"bass": 1}')""",
        """trunkline.register_task(p_task => 'new', p_backoff => '{"jitter": 2}')""",
        "trunkline.register_task(p_task => 'new', p_unique_until => 'noon')",
        "trunkline.register_task(p_task => 'new', p_crash_limit => 0)",
        "trunkline.register_task(p_task => 'new', p_profile => '')",
        "trunkline.register_tasks('[{}]')",
        """trunkline.register_tasks('[{"task": "new", "lease": 0}]')""",
        """trunkline.register_tasks('[{"task": "new", "backoff": {"bass": 1}}]')""",
    ),
    "unknown_time_zone": [
        *_by(
            _OPERATOR,
            "trunkline.set_schedule('s', '@daily', 'known', p_time_zone => 'Mars/Olympus')",
            "trunkline.set_schedule('s', '@daily', 'known', p_time_zone => 'CET')",
        ),
        *_by(_PRODUCER, "trunkline.next_due('@daily', p_time_zone => 'x+3')"),
    ],
    "unknown_schedule": _by(
        _OPERATOR,
        "trunkline.pause_schedule('nope')",
        "trunkline.resume_schedule('nope')",
        "trunkline.remove_schedule(null)",
    ),
    "unknown_worker": [
        *_by(
            _WORKER,
            "trunkline.pulse('nobody')",
            "trunkline.stop_worker('nobody')",
            "trunkline.sleep('nobody')",
        ),
        *_by(_OPERATOR, "trunkline.drain_worker('nobody')"),
    ],
    "unknown_queue": _by(
        _OPERATOR, "trunkline.resume_queue('nope')", "trunkline.resume_queue(null)"
    ),
    "idempotency_mismatch": [
        (_PRODUCER, "trunkline.enqueue(p_task => 'other', p_idempotency_key => 'k')"),
        *_many('{"task": "other", "idempotency_key": "k"}'),
    ],
    "unknown_limit": [
        *_by(_PRODUCER, "trunkline.enqueue(p_task => 'lost')"),
        *_many('{"task": "lost"}'),
        *_by(
            _WORKER,
            "trunkline.acquire('nowhere')",
            """trunkline.acquire('nowhere/{model}', p_keys => '{"model": "a"}')""",
            """trunkline.observe_limit('nowhere', '{"retry_after": 1}')""",
        ),
        *_by(_OPERATOR, "trunkline.reset_breaker('nothing')", "trunkline.trip_breaker(null)"),
    ],
    "limit_key_missing": [
        *_by(
            _PRODUCER,
            "trunkline.enqueue(p_task => 'keyed')",
            """trunkline.enqueue(p_task => 'keyed', p_payload => '{"model": ""}')""",
            "trunkline.enqueue('keyed', jsonb_build_object('model', repeat('x', 400)))",
        ),
        *_many('{"task": "keyed"}'),
        *_by(
            _WORKER,
            "trunkline.acquire('model/{model}')",
            """trunkline.acquire('model/{model}', p_keys => '{"model": null}')""",
            "trunkline.observe_limit('model/{model}', '{}')",
        ),
    ],
    "invalid_cost": [
        *_enqueue("""p_cost => '{"tokens": 1}'"""),
        *_by(
            _PRODUCER,
            """trunkline.enqueue(p_task => 'limited', p_cost => '{"tokens": -1}')""",
            """trunkline.enqueue(p_task => 'limited', p_cost => '{"tokens": "7"}')""",
            """trunkline.enqueue(p_task => 'limited', p_cost => '[1]')""",
        ),
        *_many('{"task": "limited", "cost": {"pages": 1}}'),
        *_by(
            _WORKER,
            "trunkline.acquire('api', null)",
            "trunkline.acquire('api', '[]')",
            """trunkline.acquire('api', '{"tokens": -1}')""",
            """trunkline.acquire('api', '{"tokens": 1.5}')""",
            """trunkline.acquire('api', '{"units": "7"}')""",
            """trunkline.acquire('api', '{"pages": 1}')""",
            f"""trunkline.settle({_NOBODY}, '{{"tokens": -1}}')""",
            f"""trunkline.settle({_NOBODY}, '{{"tokens": 1e13}}')""",
            f"""trunkline.settle({_NOBODY}, '{{"cost": "free"}}')""",
            f"""trunkline.settle({_NOBODY}, '{{"cost": -0.01}}')""",
            f"trunkline.settle({_NOBODY}, '[]')",
            """trunkline.settle_job(<running>, 1, '{"units": -1}')""",
            """trunkline.settle_job(<running>, 1, '{"pages": 1}')""",
            "trunkline.settle_job(<running>, 1, '3')",
        ),
    ],
    "cost_over_limit": [
        *_by(_PRODUCER, """trunkline.enqueue(p_task => 'limited', p_cost => '{"tokens": 1001}')"""),
        *_many('{"task": "limited", "cost": {"tokens": 1001}}'),
        *_by(_WORKER, """trunkline.acquire('api', '{"tokens": 1001}')"""),
    ],
    "limit_queue_full": [
        *_by(
            _PRODUCER,
            "trunkline.enqueue(p_task => 'crowded')",
            "trunkline.enqueue_batch('crowded', '[{}]')",
        ),
        *_many('{"task": "crowded"}', '{"task": "crowded", "unique_key": "fresh"}'),
    ],
    "quota_spent": [
        *_by(
            _PRODUCER,
            "trunkline.enqueue(p_task => 'broke')",
            "trunkline.enqueue_batch('broke', '[{}]')",
        ),
        *_many('{"task": "broke"}', '{"task": "broke", "idempotency_key": "fresh"}'),
    ],
    "invalid_argument": [
        *_by(
            _OPERATOR,
            "trunkline.set_limit(p_limit => '')",
            """trunkline.set_limit('new', '{"requests_per_minute": -1}')""",
            """trunkline.set_limit('new', '{"requests_per_minute": "60"}')""",
            """trunkline.set_limit('new', '{"pages": 1}')""",
            "trunkline.set_limit('new', p_status => 'asleep')",
            """trunkline.set_limit('new', '{"quota": -1}')""",
            """trunkline.set_limit('new', '{"quota": 1.5}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_unit": ""}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_window": "59 minutes"}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_window": "often"}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_window": 3600}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_period": "week"}')""",
            """trunkline.set_limit(
              'new', '{"quota": 1, "quota_window": "1 day", "quota_period": "day"}'
            )""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_buffer": 0}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_buffer": 1.01}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_low_share": "half"}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_low_below": 51}')""",
            """trunkline.set_limit('new', '{"quota": 1, "quota_refuses": null}')""",
            """trunkline.set_limit('new', '{"breaker_failures": 0}')""",
            """trunkline.set_limit('new', '{"breaker_failures": 1, "breaker_share": 2}')""",
            """trunkline.set_limit('new', '{"breaker_failures": 1, "breaker_window": "2 days"}')""",
            """trunkline.set_limit('new', '{"backpressure_threshold": 0}')""",
            """trunkline.set_limit('new', '{"backpressure_delay": "-1 second"}')""",
            """trunkline.set_limit('new', '{"depth_limit": -1}')""",
            """trunkline.set_limit('new', '{"depth_refuses": "no"}')""",
            """trunkline.set_limit('fair:new/{tenant}', '{"weight": 0}')""",
            """trunkline.set_limit('fair:new/{tenant}', '{"share_cap": 0}')""",
            "trunkline.set_limit('new', '[]')",
            "trunkline.set_limit('new', p_status => 'active', p_reason => repeat('x', 1001))",
            "trunkline.age_queue(p_queue => '')",
            f"trunkline.age_queue(p_queue => {_LONG})",
            "trunkline.age_queue(p_queue => null)",
            "trunkline.reset_breaker('api')",
            "trunkline.trip_breaker('api')",
            "trunkline.trip_breaker('model/{model}')",
            "trunkline.trip_breaker('api', p_for => '0')",
            "trunkline.trip_breaker('api', repeat('x', 1001))",
        ),
        *_by(_PRODUCER, "trunkline.enqueue(p_task => null)", "trunkline.enqueue(p_task => '')"),
        *_enqueue(
            "p_delay => '1 s', p_run_at => now()",
            "p_run_at => 'infinity'",
            "p_queue => ''",
            f"p_queue => {_LONG}",
            "p_tenant => ''",
            "p_unique_key => ''",
            "p_idempotency_key => repeat('x', 1001)",
            f"p_correlation_id => {_LONG}",
            "p_max_attempts => 0",
            "p_tags => array_fill('x'::text, array[21])",
            "p_tags => array[null]::text[]",
        ),
        *_by(
            _PRODUCER,
            "trunkline.enqueue_many(p_jobs => '{}')",
            "trunkline.enqueue_many(p_jobs => null)",
            "trunkline.next_due(p_cron => '@daily', p_after => 'infinity')",
            "trunkline.list_jobs(p_states => '{ready, done}')",
            "trunkline.list_jobs(p_states => '{null}')",
            "trunkline.register_tasks(null)",
            "trunkline.register_tasks('{}')",
            "trunkline.register_tasks('[3]')",
            """trunkline.register_tasks('[{"task": "new", "leese": 3}]')""",
            """trunkline.register_tasks('[{"task": "new", "lease": "soon"}]')""",
            """trunkline.register_tasks('[{"task": "new", "audit": "perhaps"}]')""",
            """trunkline.register_tasks('[{"task": "new"}, {"task": "new"}]')""",
        ),
        *_many(
            '{"task": "known", "priority": "high"}',
            '{"task": "known", "run_at": "soon"}',
            '{"task": "known", "max_attempts": 0}',
            '{"task": "known", "queue": ""}',
            "3",
        ),
        *_by(
            _OPERATOR,
            "trunkline.pause_queue(p_queue => '')",
            "trunkline.set_schedule('', '@daily', 'known')",
            "trunkline.set_schedule('s', '@daily', 'known', p_missed => 'perhaps')",
        ),
        *_by(
            _WORKER,
            "trunkline.acquire(null)",
            "trunkline.acquire('api', p_keys => '[]')",
            "trunkline.acquire('api', p_keys => null)",
            "trunkline.acquire('api', p_ttl => '0')",
            "trunkline.acquire('api', p_ttl => '2 days')",
            "trunkline.acquire('api', p_ttl => null)",
            "trunkline.acquire('api', p_job => <running>)",
            "trunkline.acquire('api', p_attempt => 1)",
            "trunkline.observe_limit(null, '{}')",
            "trunkline.observe_limit('api', null)",
            "trunkline.observe_limit('api', '[]')",
            "trunkline.observe_limit('api', '{}', p_keys => '[]')",
            """trunkline.observe_limit('api', '{"retry_after": -1}')""",
            """trunkline.observe_limit('api', '{"retry_after": "soon"}')""",
            """trunkline.observe_limit('api', '{"remaining": 3}')""",
            """trunkline.observe_limit('api', '{"reset_tokens": 1e13}')""",
            "trunkline.register_worker(p_worker => 'w', p_pulse_interval => '0')",
            "trunkline.sleep('w', array[['a'], ['b']])",
            "trunkline.sleep('w', '{null}')",
            "trunkline.release_forgotten('w', null)",
            "trunkline.sleep('w', array[''])",
            f"trunkline.sleep('w', array[{_LONG}])",
            "trunkline.sleep('w', array_fill('q'::text, array[1001]))",
        ),
    ],
    # No function of the contract takes the name of a duty; the guard is for the owner's own calls.
    "unknown_duty": _by("trunkline_owner", "trunkline_internal.duty_begin(p_duty => 'nope')"),
}
