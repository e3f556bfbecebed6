"""Limits, tasks and names as a session sees them that acts for one tenant."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.support.databases import Database
from tests.support.internals import breaks

Connection = psycopg.Connection[Any]
Narrowed = Callable[..., Connection]

DENIED, NEEDS_ALL = "TL017", "TL036"
LIMITS = {
    "budget/{tenant}": {"requests_per_minute": 5},
    "budget/b": {"requests_per_minute": 5},
    "budget/ba": {"requests_per_minute": 5},
    "m/{tenant}/{model}": {"requests_per_minute": 5},
    "openai": {"requests_per_minute": 5, "breaker_failures": 9},
    "unnamed": {"requests_per_minute": 5},
}


@pytest.fixture
def everybody(database: Database) -> Connection:
    """A session that acts for all tenants, with limits and a task that names some of them."""
    connection = database.superuser()
    for name, parts in LIMITS.items():
        connection.execute("select trunkline.set_limit(%s, %s)", (name, json.dumps(parts)))
    connection.execute(
        "select trunkline.register_task('call', p_limits => '{openai}', p_lease => '1 minute')"
    )
    connection.execute(
        "select trunkline.register_task('chat', p_limits => array['m/{tenant}/{model}'])"
    )
    return connection


@pytest.fixture
def narrowed(database: Database, everybody: Connection) -> Narrowed:
    def make(role: str, tenant: str = "a") -> Connection:
        connection = database.connect(f"trunkline_{role}")
        connection.execute("select set_config('trunkline.tenant', %s, false)", (tenant,))
        return connection

    return make


def value(connection: Connection, query: str, *arguments: object) -> Any:
    row = connection.execute(query.encode(), arguments or None).fetchone()
    assert row is not None
    return row[0]


def refused(connection: Connection, query: str, *arguments: object) -> tuple[str | None, Any]:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(query.encode(), arguments or None)
    return caught.value.sqlstate, json.loads(caught.value.diag.message_detail or "{}")


def spent(everybody: Connection) -> dict[str, int]:
    rows = everybody.execute("select name, requests_of_minute, paused_until from trunkline.buckets")
    return {name: -1 if held else requests for name, requests, held in rows}


def started(narrowed: Narrowed, task: str = "call") -> Any:
    """A job of tenant a that a narrowed worker runs."""
    value(narrowed("producer"), "select (trunkline.enqueue(%s)).job_id", task)
    return value(narrowed("worker"), "select job_id from trunkline.claim('w')")


@pytest.mark.parametrize("role", ["producer", "worker"])
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("budget/b", {}),
        ("budget/{who}", {"who": "b"}),
        # What the caller writes around {tenant} is not a limit anybody made.
        ("budget/b{tenant}", {}),
        ("openai", {}),
        ("m/b/gpt", {}),
        ("nowhere", {}),
    ],
)
def test_a_limit_that_is_not_the_tenant_s_is_denied(
    everybody: Connection, narrowed: Narrowed, role: str, name: str, keys: dict[str, str]
) -> None:
    """RC: neither spent nor paused, whoever asks and however the name is put together."""
    before = spent(everybody)
    connection = narrowed(role)
    arguments = (name, json.dumps(keys))
    ask = "select trunkline.acquire(%s, p_keys => %s)"
    assert refused(connection, ask, *arguments)[0] == DENIED
    tell = "select trunkline.observe_limit(%s, p_keys => %s, p_observed => '{\"retry_after\": 9}')"
    assert refused(connection, tell, *arguments)[0] == DENIED
    assert spent(everybody) == before


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("budget/{tenant}", {}),
        # The tenant is the session's, whatever the keys say.
        ("budget/{tenant}", {"tenant": "b"}),
        ("m/{tenant}/{model}", {"model": "eu/gpt"}),
    ],
)
def test_the_tenant_s_own_limits_are_reached_by_any_of_their_names(
    everybody: Connection, narrowed: Narrowed, name: str, keys: dict[str, str]
) -> None:
    producer = narrowed("producer")
    ask = "select (trunkline.acquire(%s, p_keys => %s)).granted"
    assert value(producer, ask, name, json.dumps(keys))
    [shown] = spent(everybody)
    assert shown in {"budget/a", "m/a/eu%2Fgpt"}
    assert value(producer, ask, shown, "{}")
    assert spent(everybody) == {shown: 2}
    tell = "select trunkline.observe_limit(%s, '{\"retry_after\": 60}') is not null"
    assert value(producer, tell, shown)
    assert spent(everybody) == {shown: -1}


TELL = "select trunkline.observe_limit(%s, '{\"retry_after\": 60}', %s, %s, %s) is not null"


def test_a_name_that_two_templates_produce_is_no_tenant_s_own(
    everybody: Connection, narrowed: Narrowed
) -> None:
    """RC: tenant `limited` would pause what counts for tenant b, by either of its names."""
    # Such names are refused by now; a database of an earlier release may have them.
    breaks.allow_ambiguous_limits(everybody)
    for name in ("{tenant}/a/b/{model}", "limited/a/b/b"):
        everybody.execute("select trunkline.set_limit(%s, '{\"concurrency\": 5}')", (name,))
    everybody.execute(
        "select trunkline.register_task('of b', p_limits => array['limited/a/b/{tenant}'])"
    )
    everybody.execute("select trunkline.enqueue('of b', p_tenant => 'b')")
    before = spent(everybody)
    assert set(before) == {"limited/a/b/b"}
    for role in ("producer", "worker"):
        other = narrowed(role, "limited")
        for name, keys in (("limited/a/b/b", {}), ("{tenant}/a/b/{model}", {"model": "b"})):
            assert refused(other, TELL, name, json.dumps(keys), None, None)[0] == DENIED
            ask = "select trunkline.acquire(%s, p_keys => %s)"
            assert refused(other, ask, name, json.dumps(keys))[0] == DENIED
    assert spent(everybody) == before
    # Where only one of them produces the name, it is the tenant's.
    owner = narrowed("producer", "acme")
    assert value(owner, TELL, "{tenant}/a/b/{model}", '{"model": "gpt"}', None, None)
    assert spent(everybody)["acme/a/b/gpt"] == -1


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("{tenant}/{model}", "budget/{tenant}"),
        ("budget/{account}", "budget/{tenant}"),
        ("bud{account}", None),
        ("budget/x{account}", "budget/{tenant}"),
        ("b{kind}/{who}-{what}", "budget/{tenant}"),
        ("{a}/{b}/gpt", "m/{tenant}/{model}"),
        ("n{a}/{b}/gpt", None),
        ("m/{a}/{b}/{c}", None),
        # A filled-in name replaces the one with keys.
        ("budget/c", None),
    ],
)
def test_limits_that_could_produce_the_same_name_are_refused(
    everybody: Connection, name: str, other: str | None
) -> None:
    """RC: they would count in one place, and one tenant's name could be another's."""
    declared = json.dumps([{"task": "t", "declares": {name: {}}}])
    for code, call, argument in (
        ("TL022", "select trunkline.register_tasks(%s)", declared),
        ("TL028", "select trunkline.set_limit(%s)", name),
    ):
        if other is None:
            everybody.execute(call.encode(), (argument,))
        else:
            found, detail = refused(everybody, call, argument)
            assert (found, f"{other} overlaps" in detail["must_be"]) == (code, True)
    # One that is there can be changed.
    everybody.execute("select trunkline.set_limit('budget/{tenant}', '{\"concurrency\": 1}')")


def test_a_tenant_s_own_limit_may_have_a_filled_in_name(
    everybody: Connection, narrowed: Narrowed
) -> None:
    assert value(narrowed("producer", "b"), TELL, "budget/{tenant}", "{}", None, None)
    assert spent(everybody)["budget/b"] == -1


def test_a_job_pauses_a_shared_limit_for_its_own_keys_alone(
    everybody: Connection, narrowed: Narrowed
) -> None:
    limit = "acct/{account}"
    everybody.execute("select trunkline.set_limit(%s, '{\"requests_per_minute\": 5}')", (limit,))
    everybody.execute("select trunkline.register_task('bill', p_limits => %s)", ([limit],))
    value(
        narrowed("producer"), "select (trunkline.enqueue('bill', '{\"account\": \"A1\"}')).job_id"
    )
    worker = narrowed("worker")
    job = value(worker, "select job_id from trunkline.claim('w')")
    for name, account in ((limit, "B1"), ("acct/B1", "A1"), ("acct/{other}", "A1")):
        keys = json.dumps({"account": account, "other": "B1"})
        assert refused(worker, TELL, name, keys, job, 1)[0] == DENIED
        ask = "select trunkline.acquire(%s, p_keys => %s, p_job => %s, p_attempt => %s)"
        assert refused(worker, ask, name, keys, job, 1)[0] == DENIED
    assert set(spent(everybody)) == {"acct/A1"}
    assert value(worker, TELL, limit, '{"account": "A1"}', job, 1)
    assert spent(everybody) == {"acct/A1": -1}


def test_a_shared_limit_is_reached_for_a_running_job_that_names_it(
    everybody: Connection, narrowed: Narrowed
) -> None:
    job = started(narrowed)
    worker = narrowed("worker")
    ask = "select (trunkline.acquire(%s, p_job => %s, p_attempt => %s)).granted"
    tell = (
        "select trunkline.observe_limit(%s, '{\"retry_after\": 60}', p_job => %s, p_attempt => %s)"
        " is not null"
    )
    assert value(worker, ask, "openai", job, 1)
    assert refused(worker, ask, "unnamed", job, 1)[0] == DENIED
    assert refused(worker, tell, "unnamed", job, 1)[0] == DENIED
    # Neither another attempt nor another tenant's session.
    assert refused(worker, tell, "openai", job, 2)[0] == DENIED
    assert refused(narrowed("worker", "b"), tell, "openai", job, 1)[0] == DENIED
    assert value(worker, tell, "openai", job, 1)
    assert spent(everybody)["openai"] == -1
    worker.execute("select trunkline.complete('w', array[%s], '{1}')", (job,))
    assert refused(worker, tell, "openai", job, 1)[0] == DENIED


def test_an_equal_registration_changes_nothing_and_any_other_is_refused_by_name(
    everybody: Connection, narrowed: Narrowed
) -> None:
    tasks = "select array_agg(t order by t.task)::text from trunkline.tasks as t"
    before = value(everybody, tasks)
    for role in ("producer", "worker"):
        connection = narrowed(role)
        connection.execute("select trunkline.register_task('call')")
        connection.execute("select trunkline.register_task('call', p_limits => '{openai}')")
        equal = [{"task": "call", "lease": "60 s", "limits": ["openai"]}]
        same = value(connection, "select trunkline.register_tasks(%s)", json.dumps(equal))
        assert same == 0
        code, detail = refused(
            connection, "select trunkline.register_task('call', p_limits => '{}', p_audit => true)"
        )
        assert (code, detail["task"], detail["differs"]) == (NEEDS_ALL, "call", ["audit", "limits"])
        code, detail = refused(connection, "select trunkline.register_task('brand new')")
        assert (code, detail["task"], detail["known"]) == (NEEDS_ALL, "brand new", False)
    assert value(everybody, tasks) == before
    assert value(narrowed("producer"), "select (trunkline.enqueue('call')).created")


def test_unknown_tasks_are_not_registered_for_one_tenant(
    everybody: Connection, narrowed: Narrowed
) -> None:
    everybody.execute("select trunkline.set_setting('allow_unknown_tasks', 'true')")
    assert refused(narrowed("producer"), "select trunkline.enqueue('brand new')")[0] == "TL001"
    everybody.execute("select trunkline.enqueue('brand new')")
    narrowed("producer").execute("select trunkline.enqueue('brand new')")


@pytest.mark.parametrize(
    ("role", "call"),
    [
        ("producer", "trunkline.enqueue('nothing')"),
        ("producer", """trunkline.enqueue_many('[{"task": "nothing"}]')"""),
        ("producer", "trunkline.enqueue_batch('nothing', '[{}]')"),
        ("producer", "trunkline.enqueue('lost')"),
        ("producer", """trunkline.enqueue_many('[{"task": "lost"}]')"""),
        ("producer", "trunkline.acquire('nowhere')"),
        ("producer", "trunkline.acquire('nowhere/{tenant}')"),
        ("worker", "trunkline.observe_limit('nowhere', '{}')"),
        ("operator", "trunkline.trip_breaker('nowhere')"),
        ("operator", "trunkline.resume_queue('nowhere')"),
        ("operator", "trunkline.resume_schedule('nowhere')"),
        ("operator", "trunkline.set_schedule('s', '@daily', 'nothing')"),
        ("operator", "trunkline.set_setting('nothing', '1')"),
    ],
)
def test_errors_do_not_list_to_one_tenant_what_others_have(
    everybody: Connection, narrowed: Narrowed, role: str, call: str
) -> None:
    everybody.execute("select trunkline.register_task('lost', p_limits => array['nowhere'])")
    everybody.execute("select trunkline.set_schedule('secret', '@daily', 'call', p_tenant => 'b')")
    everybody.execute("select trunkline.pause_queue('secret')")
    code, detail = refused(narrowed(role), f"select {call}")
    assert code is not None
    assert code.startswith("TL")
    text = json.dumps(detail)
    for name in (*LIMITS, "call", "chat", "secret"):
        assert f'"{name}"' not in text
    assert not detail.get("known")
    # The same call by who acts for all is told.
    known = refused(everybody, f"select {call.replace('nowhere/{tenant}', 'nowhere')}")[1]["known"]
    assert known


NAMES = [
    ("acme", "gpt", "m/acme/gpt"),
    ("acme", "eu/gpt", "m/acme/eu%2Fgpt"),
    ("acme/eu", "gpt", "m/acme%2Feu/gpt"),
    ("acme%2Feu", "gpt", "m/acme%252Feu/gpt"),
    ("{tenant}", "{model}", "m/%7Btenant%7D/%7Bmodel%7D"),
    ("Žofie & søn", "gpt-4.1:free", "m/Žofie & søn/gpt-4.1:free"),
]


@pytest.mark.parametrize("batch", [False, True])
def test_different_keys_never_share_a_name(everybody: Connection, batch: bool) -> None:
    jobs = [
        {"task": "chat", "tenant": tenant, "payload": {"model": model}}
        for tenant, model, _ in NAMES
    ]
    if batch:
        everybody.execute("select trunkline.enqueue_many(%s)", (json.dumps(jobs),))
    else:
        for job in jobs:
            everybody.execute(
                "select trunkline.enqueue('chat', %s, p_tenant => %s)",
                (json.dumps(job["payload"]), job["tenant"]),
            )
    rows = everybody.execute("select name, waiting from trunkline.buckets").fetchall()
    assert dict(rows) == {name: 1 for _, _, name in NAMES}
    # What is shown is accepted, and means the same.
    for tenant, model, name in NAMES:
        everybody.execute("select trunkline.acquire(%s)", (name,))
        everybody.execute(
            "select trunkline.acquire('m/{tenant}/{model}', p_keys => %s)",
            (json.dumps({"tenant": tenant, "model": model}),),
        )
    assert set(spent(everybody).values()) == {2}


@pytest.mark.parametrize("pattern", ["x-{a}-{b}", "x{a}: {b}", "{a}é{b}", "x/{a}/{b}/{c}"])
def test_names_with_other_separators_keep_their_keys_apart(
    everybody: Connection, pattern: str
) -> None:
    separator = pattern.split("}")[1][0]
    everybody.execute("select trunkline.set_limit(%s, '{\"requests_per_minute\": 9}')", (pattern,))
    values = ["p", f"p{separator}q", f"{separator}", "p/q", "%2D", "p%", f"q{separator} p"]
    pairs = {(one, other) for one in values for other in values}
    for one, other in pairs:
        everybody.execute(
            "select trunkline.acquire(%s, p_keys => %s)",
            (pattern, json.dumps({"a": one, "b": other, "c": "c"})),
        )
    assert set(spent(everybody).values()) == {1}
    assert len(spent(everybody)) == len(pairs)


@pytest.mark.parametrize("name", ["x{a}{b}", "{a}to{b}", "{a}1{b}", "{a}%{b}"])
def test_ambiguous_keys_are_refused(everybody: Connection, name: str) -> None:
    code, detail = refused(everybody, "select trunkline.set_limit(%s)", name)
    assert (code, detail["argument"]) == ("TL028", "p_limit")
    code, detail = refused(everybody, "select trunkline.register_task('t', p_limits => %s)", [name])
    assert (code, detail["argument"]) == ("TL022", "p_limits")
    declared = json.dumps([{"task": "t", "declares": {name: {}}}])
    assert refused(everybody, "select trunkline.register_tasks(%s)", declared)[0] == "TL022"


def test_a_name_is_bounded_as_it_is_stored(everybody: Connection) -> None:
    """A slash takes three bytes."""
    for model, expected in (("/" * 130, None), ("/" * 140, "TL031")):
        query = "select trunkline.acquire('m/{tenant}/{model}', p_tenant => 'a', p_keys => %s)"
        keys = json.dumps({"model": model})
        if expected is None:
            everybody.execute(query.encode(), (keys,))
        else:
            assert refused(everybody, query, keys)[0] == expected
