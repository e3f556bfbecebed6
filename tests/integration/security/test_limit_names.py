"""Limit names with keys that could mean the same bucket are refused, whoever brings them when."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.support.databases import Database
from tests.support.waiting import backend, until_blocked

Connection = psycopg.Connection[Any]

SET = "select trunkline.set_limit(%s, '{\"concurrency\": 1}')"
TASK = "select trunkline.register_task(%s, p_limits => %s)"
TASKS = "select trunkline.register_tasks(%s)"


def overlap(connection: Connection, query: str, *arguments: object) -> tuple[str | None, str]:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(query.encode(), arguments)
    detail = json.loads(caught.value.diag.message_detail or "{}")
    return caught.value.sqlstate, detail.get("must_be", "").rpartition(": ")[2]


def test_a_task_may_not_name_what_overlaps_a_limit(database: Database) -> None:
    operator = database.connect("trunkline_operator")
    operator.execute(SET, ("p/{tenant}",))
    refused = ("TL022", "p/{tenant} overlaps")
    assert overlap(operator, TASK, "t", ["p/{model}"]) == refused
    given = json.dumps([{"task": "t", "limits": ["p/{model}"]}])
    assert overlap(operator, TASKS, given) == refused
    operator.execute(TASK, ("t", ["p/{tenant}", "p/x", "q/{model}"]))


def test_a_limit_may_not_overlap_what_a_task_names(database: Database) -> None:
    operator = database.connect("trunkline_operator")
    operator.execute(TASK, ("t", ["p/{model}"]))
    assert overlap(operator, SET, "p/{tenant}") == ("TL028", "p/{model} overlaps")
    declared = json.dumps([{"task": "u", "declares": {"{kind}/x": {}}}])
    assert overlap(operator, TASKS, declared) == ("TL022", "p/{model} overlaps")
    operator.execute(SET, ("p/{model}",))


def test_two_tasks_may_share_a_name_but_not_overlap(database: Database) -> None:
    operator = database.connect("trunkline_operator")
    operator.execute(TASK, ("one", ["p/{model}"]))
    operator.execute(TASK, ("two", ["p/{model}"]))
    assert overlap(operator, TASK, "three", ["p/{tenant}"]) == ("TL022", "p/{model} overlaps")
    assert overlap(operator, TASK, "three", ["q/{a}", "q/{b}"]) == ("TL022", "q/{a} overlaps")


def test_a_task_may_replace_its_own_name(database: Database) -> None:
    operator = database.connect("trunkline_operator")
    operator.execute(TASK, ("t", ["p/{model}"]))
    operator.execute(TASK, ("t", ["p/{name}"]))
    operator.execute(SET, ("p/{name}",))
    declared = [{"task": "u", "limits": ["q/{a}"], "declares": {"q/{a}": {"concurrency": 1}}}]
    operator.execute(TASKS, (json.dumps(declared),))
    declared = [{"task": "v", "limits": ["r/{a}"]}]
    operator.execute(TASKS, (json.dumps(declared),))
    declared = [{"task": "v", "limits": ["r/{b}"], "declares": {"r/{b}": {"concurrency": 1}}}]
    operator.execute(TASKS, (json.dumps(declared),))
    kept = operator.execute("select task, limits from trunkline.tasks order by task").fetchall()
    assert kept == [("t", ["p/{name}"]), ("u", ["q/{a}"]), ("v", ["r/{b}"])]


CALLS: dict[str, Callable[[str], tuple[str, tuple[object, ...]]]] = {
    "set_limit": lambda name: (SET, (name,)),
    "register_task": lambda name: (TASK, (name, [name])),
    "declares": lambda name: (TASKS, (json.dumps([{"task": name, "declares": {name: {}}}]),)),
}


@pytest.mark.parametrize("first", CALLS)
@pytest.mark.parametrize("second", CALLS)
def test_names_that_overlap_are_not_added_at_once(
    database: Database, first: str, second: str
) -> None:
    one = database.connect("trunkline_operator", autocommit=False)
    other = database.connect("trunkline_operator")
    query, arguments = CALLS[first]("p/{tenant}")
    one.execute(query.encode(), arguments)
    query, arguments = CALLS[second]("p/{model}")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(overlap, other, query, *arguments)
        assert until_blocked(database.superuser(), backend(other)) == [backend(one)]
        one.commit()
        assert answer.result()[1] == "p/{tenant} overlaps"


def test_a_transaction_with_an_older_snapshot_misses_no_name(database: Database) -> None:
    old = database.connect("trunkline_operator", autocommit=False)
    old.execute("set transaction isolation level repeatable read")
    old.execute("select 1 from trunkline.limits")
    database.connect("trunkline_operator").execute(SET, ("p/{tenant}",))
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute(SET, ("p/{model}",))


def test_names_that_are_known_wait_for_nobody(database: Database) -> None:
    """Workers that start register their tasks while an operator adds a limit."""
    worker = database.connect("trunkline_worker")
    worker.execute(TASK, ("t", ["p/{model}"]))
    adding = database.connect("trunkline_operator", autocommit=False)
    adding.execute(SET, ("q/{tenant}",))
    # A wait would end in an error instead of a test that hangs.
    worker.execute("set lock_timeout = '1s'")
    worker.execute(TASK, ("t", ["p/{model}"]))
    given = json.dumps([{"task": "t", "limits": ["p/{model}"]}, {"task": "plain", "limits": ["x"]}])
    worker.execute(TASKS, (given,))
    adding.commit()
    operator = database.connect("trunkline_operator")
    kept = operator.execute("select task, limits from trunkline.tasks order by task").fetchall()
    assert kept == [("plain", ["x"]), ("t", ["p/{model}"])]


def test_a_declaration_names_no_limit_of_others_to_one_tenant(database: Database) -> None:
    database.connect("trunkline_operator").execute(SET, ("secret/{tenant}",))
    producer = database.connect("trunkline_producer")
    producer.execute("select set_config('trunkline.tenant', 'a', false)")
    given = json.dumps([{"task": "t", "declares": {"secret/{model}": {}}}])
    with pytest.raises(psycopg.Error) as caught:
        producer.execute(TASKS, (given,))
    assert caught.value.sqlstate == "TL036"
    assert "secret/{tenant}" not in (caught.value.diag.message_detail or "")
