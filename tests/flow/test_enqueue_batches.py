"""Limited jobs in batches: the same rows as one by one, and the same words where one is refused."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.support.internals import flow, rows, usage
from tests.support.internals import jobs as jobs_

# All of a job but its id, and its number as the order in which it was drawn.
Job = dict[str, Any]


def setting(desk: Desk) -> None:
    """Limits of every kind, and tasks that use them."""
    desk.limit("api", concurrency=5, requests_per_minute=1000, tokens_per_minute=10_000)
    desk.limit("model/{model}", requests_per_minute=100, quota=1_000_000)
    desk.limit("model/own", concurrency=2)
    desk.limit("doc/{document}/{page}", concurrency=1)
    desk.limit("of/{tenant}", concurrency=3, depth_limit=1000)
    desk.task(task="free", queue="elsewhere")
    desk.task("api", task="plain").task("api", task="costly", cost={"tokens": 700, "requests": 2})
    desk.task("model/{model}", task="keyed").task("api", "model/{model}", task="both")
    desk.task("doc/{document}/{page}", "of/{tenant}", "api", task="three", priority=-3)
    desk.task("of/{tenant}", task="tenanted", audit=True)
    desk.task("model/{model}", task="learned", cost={"tokens": 5, "units": 5})
    usage.learn(desk.behind, "learned", "model/a", tokens=77, units=99)
    usage.learn(desk.behind, "learned", "model/b", tokens=0, units=9999999)


JOBS: list[Job] = [
    {"task": "plain"},
    {"task": "plain", "payload": {"n": 1}, "queue": "other", "priority": 7, "tags": ["x"]},
    {"task": "plain", "cost": {"tokens": 9, "units": 3}, "delay": "90 seconds"},
    {"task": "costly"},
    {"task": "costly", "cost": {"requests": 3}},
    {"task": "keyed", "payload": {"model": "a"}},
    {"task": "keyed", "payload": {"model": "b", "n": 2}, "correlation_id": "c"},
    {"task": "keyed", "payload": {"model": "own"}},
    {"task": "keyed", "payload": {"model": 4}},
    {"task": "keyed", "payload": {"model": "4"}, "max_attempts": 2},
    {"task": "both", "payload": {"model": "a"}},
    {"task": "both", "payload": {"model": "own", "text": "y" * 3000}},
    {"task": "three", "payload": {"document": "d", "page": 1}, "tenant": "t1"},
    {"task": "three", "payload": {"document": "d", "page": 1, "tenant": "said"}},
    {"task": "three", "payload": {"document": "e", "page": 2}, "tenant": "t1"},
    {"task": "tenanted", "tenant": "t1"},
    {"task": "tenanted", "tenant": "t2", "payload": {"tenant": "t1"}},
    {"task": "tenanted", "payload": {"tenant": "t1"}},
    {"task": "learned", "payload": {"model": "a"}},
    {"task": "learned", "payload": {"model": "b"}},
    {"task": "learned", "payload": {"model": "c"}},
    {"task": "learned", "payload": {"model": "a"}, "cost": {"tokens": 1}},
    {"task": "free", "payload": {"model": "a"}},
    {"task": "plain", "cost": {}},
]


def together(desk: Desk, jobs: Sequence[Job]) -> list[Any]:
    return desk.producer.enqueue_many(jobs)


def alone(desk: Desk, jobs: Sequence[Job]) -> list[Any]:
    return [desk.producer.enqueue(**job) for job in jobs]


def kept(desk: Desk, how: Callable[[Desk, Sequence[Job]], list[Any]], jobs: Sequence[Job]) -> Any:
    """What is kept of jobs enqueued in this way, and what is taken back again."""
    with desk.behind.transaction(force_rollback=True):
        desk.producer.connection = desk.behind
        answers = how(desk, jobs)
        ids = [answer.job_id for answer in answers]
        written = jobs_.as_enqueued(desk.behind, ids)
        buckets = flow.buckets(desk.behind)
        opened = flow.open_in_queues(desk.behind)
        events = desk.behind.execute(
            "select e.kind, e.to_state, e.task, e.tenant, e.detail - 'run_at'"
            " from trunkline.events as e where e.job_id = any(%s)",
            (ids,),
        ).fetchall()
        told = [(answer.created, answer.state) for answer in answers]
    assert len(written) == len(jobs)
    return {"rows": written, "buckets": buckets, "opened": opened, "events": events, "told": told}


def test_a_batch_keeps_what_one_by_one_keeps(desk: Desk) -> None:
    """Every kind of task, key, cost and option, in one document of all of them."""
    setting(desk)
    assert kept(desk, together, JOBS) == kept(desk, alone, JOBS)


@pytest.mark.parametrize("task", ["plain", "costly", "keyed", "both", "three", "learned", "free"])
def test_payloads_alone_are_kept_the_same(desk: Desk, task: str) -> None:
    setting(desk)
    payloads = [
        {"model": model, "document": "d", "page": page, "tenant": f"t{page}"}
        for model, page in itertools.product(("a", "own", "z"), range(4))
    ]

    def as_batch(desk: Desk, jobs: Sequence[Job]) -> list[Any]:
        found = desk.behind.execute(
            "select b.job_ids, b.state from trunkline.enqueue_batch(%s, %s) as b",
            (task, Jsonb(payloads)),
        ).fetchone()
        assert found is not None
        assert found[1] == "ready"
        return [Answer(job) for job in found[0]]

    class Answer:
        created, state = True, "ready"

        def __init__(self, job: Any) -> None:
            self.job_id = job

    jobs = [{"task": task, "payload": payload} for payload in payloads]
    assert kept(desk, as_batch, jobs) == kept(desk, alone, jobs)


def test_a_bucket_under_pressure_defers_the_same_jobs(desk: Desk) -> None:
    """CP-23: of a batch only those of the key that is pressed."""
    desk.set_limit("model/{model}", {"requests_per_minute": 10, "backpressure_threshold": 0.5})
    desk.task("model/{model}")
    desk.enqueue(6, payload={"model": "a"})
    assert len(desk.claim()) == 6
    jobs = [
        {"task": "work", "payload": {"model": model}, **more}
        for model in ("a", "b")
        for more in ({}, {"delay": "1 hour"}, {"cost": {"requests": 2}})
    ]
    found = kept(desk, together, jobs)
    assert found == kept(desk, alone, jobs)
    assert [state for _, state in found["told"]] == [
        "scheduled",
        "scheduled",
        "scheduled",
        "ready",
        "scheduled",
        "ready",
    ]


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ({"task": "keyed"}, "limit_key_missing"),
        ({"task": "keyed", "payload": {"model": ""}}, "limit_key_missing"),
        ({"task": "keyed", "payload": {"model": "x" * 400}}, "limit_key_missing"),
        ({"task": "three", "payload": {"document": "d"}, "tenant": "t"}, "limit_key_missing"),
        ({"task": "lost"}, "unknown_limit"),
        ({"task": "plain", "cost": {"tokens": -1}}, "invalid_cost"),
        ({"task": "plain", "cost": [1]}, "invalid_cost"),
        ({"task": "free", "cost": {"tokens": 1}}, "invalid_cost"),
        ({"task": "plain", "cost": {"tokens": 10_001}}, "cost_over_limit"),
        (
            {"task": "keyed", "payload": {"model": "a"}, "cost": {"units": 950_001}},
            "cost_over_limit",
        ),
        ({"task": "plain", "payload": [1]}, "payload_not_object"),
        ({"task": "nobody"}, "unknown_task"),
    ],
)
def test_the_one_that_is_wrong_is_named(desk: Desk, job: Job, code: str) -> None:
    """All or none, with the index of the one that cannot be."""
    setting(desk)
    desk.task("nowhere", task="lost")
    good = {"task": "plain"}
    with pytest.raises(psycopg.Error) as refused:
        desk.producer.enqueue_many([good, good, job, good])
    assert (desk.detail(refused.value)["code"], desk.detail(refused.value)["index"]) == (code, 2)
    assert rows.count(desk.behind, "waiting") == 0


def test_a_batch_is_claimed_in_its_order(desk: Desk) -> None:
    desk.limit("model/{model}", concurrency=100).task("model/{model}")
    jobs = [{"task": "work", "payload": {"model": "ab"[n % 2], "n": n}} for n in range(40)]
    ids = [row.job_id for row in desk.producer.enqueue_many(jobs)]
    claimed = desk.claimed()
    assert [job for job in claimed if job in ids[::2]] == ids[::2]
    assert [job for job in claimed if job in ids[1::2]] == ids[1::2]


def close_buckets(desk: Desk) -> None:
    """Sweep until the empty buckets are gone: that takes until other transactions have ended."""
    for _ in range(10_000):
        desk.operator.value("select trunkline.sweep_buckets()")
        if not flow.open_buckets(desk.behind):
            return
    pytest.fail("a bucket without jobs is still open")


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("how", ["enqueue", "enqueue_many", "enqueue_batch"])
def test_no_job_is_left_behind_a_bucket_that_closed(desk: Desk, how: str, level: str) -> None:
    """A snapshot that still sees the bucket open is not trusted: the job is claimed."""
    desk.limit("api", concurrency=5).task("api")
    desk.enqueue(1)
    desk.end(desk.claim())
    producer = desk.database.connect("trunkline_producer", autocommit=False)
    producer.execute(f"set transaction isolation level {level}".encode())
    producer.execute("select trunkline.clock()")
    close_buckets(desk)
    producer.execute(
        {
            "enqueue": "select trunkline.enqueue('work')",
            "enqueue_many": """select trunkline.enqueue_many('[{"task": "work"}]')""",
            "enqueue_batch": "select trunkline.enqueue_batch('work', '[{}]')",
        }[how].encode()
    )
    producer.commit()
    assert len(desk.claim()) == 1


def test_a_bucket_stays_open_while_a_transaction_relies_on_it(desk: Desk) -> None:
    """An enqueue that saw the bucket open while it was being marked, in a long transaction."""
    desk.limit("api", concurrency=5).task("api")
    desk.enqueue(1)
    desk.end(desk.claim())
    sweeper = desk.database.connect("trunkline_operator", autocommit=False)
    sweeper.execute("select trunkline.sweep_buckets()")
    producer = desk.database.connect("trunkline_producer", autocommit=False)
    producer.execute("select trunkline.enqueue('work')")
    sweeper.commit()
    for _ in range(5):
        desk.operator.value("select trunkline.sweep_buckets()")
    producer.commit()
    assert len(desk.claim()) == 1


def test_a_tenants_session_fills_in_its_own_name(desk: Desk) -> None:
    """Whatever the payload says: the tenant of the session is the key."""
    desk.limit("of/{tenant}", concurrency=1).task("of/{tenant}")
    producer = desk.database.connect("trunkline_producer")
    producer.execute("select set_config('trunkline.tenant', 'mine', false)")
    producer.execute("""select trunkline.enqueue_batch('work', '[{"tenant": "other"}, {}]')""")
    producer.execute("""select trunkline.enqueue_many('[{"task": "work"}]')""")
    producer.execute("select trunkline.enqueue('work')")
    assert flow.names_of_waiting(desk.behind, "mine") == ["of/mine"] * 4
