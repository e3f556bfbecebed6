"""Calls as values: how parameters are encoded and how answers are read."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from trunkline.db.call import json_text, nothing, one, plain_text, rows_of, scalar
from trunkline.db.calls import read, recent, work
from trunkline.db.calls.produce import register_tasks
from trunkline.db.packed import Integers, Uuids
from trunkline.model import Backoff, Event, JobState, TaskPolicy

_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_IDS = [UUID(int=number) for number in (3, 1, 2)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({"a": [1, 2.5, True, "x"]}, '{"a":[1,2.5,true,"x"]}'),
        ("plain", '"plain"'),
        ("a\0b", '"a\ufffdb"'),
        ({"k\0": ("v\0", [{"x": "\0"}], 1)}, '{"k\ufffd":["v\ufffd",[{"x":"\ufffd"}],1]}'),
        # A backslash before u0000 is no NUL.
        ("a\\u0000", '"a\\\\u0000"'),
        ("a\\\0", '"a\\\\\ufffd"'),
        ("lone \ud800", '"lone ?"'),
        (["\udcff", 7], '["?",7]'),
        ("grün", '"grün"'),
    ],
)
def test_json_has_no_text_that_postgres_cannot_store(value: object, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", ""),
        ("plain", "plain"),
        ("grün", "grün"),
        ("a\nb", "a\nb"),
        ("a\0b\0", "a\ufffdb\ufffd"),
        ("a\udcffb", "a?b"),
    ],
)
def test_text_has_no_character_that_postgres_cannot_store(
    value: str | None, expected: str | None
) -> None:
    assert plain_text(value) == expected


def test_answers_are_read_by_their_shape() -> None:
    rows = [(3, "c"), (1, "a"), (2, "b")]
    assert scalar(rows) == 3
    assert nothing(rows) is None  # type: ignore[func-returns-value]
    assert one(lambda number, letter: f"{number}{letter}")(rows) == "3c"
    assert rows_of(lambda number, letter: f"{number}{letter}")(rows) == ["3c", "1a", "2b"]


def test_packed_arrays_have_the_layout_of_the_server() -> None:
    head = bytes.fromhex("00000001 00000000")
    assert Integers.of([5, 6]) == head + bytes.fromhex(
        "00000017 00000002 00000001 00000004 00000005 00000004 00000006"
    )
    assert Integers.of([]) == bytes.fromhex("00000000 00000000 00000017")
    assert Uuids.of([UUID(int=7)]) == head + bytes.fromhex(
        "00000b86 00000001 00000001 00000010" + f"{7:032x}"
    )
    assert Uuids.of([]) == bytes.fromhex("00000000 00000000 00000b86")


def test_every_end_carries_jobs_attempts_and_texts_that_can_be_stored() -> None:
    attempts = [3, 1, 2]
    errors = [{"message": "a\0"}, None, {"message": "b"}]
    texts = ['{"message":"a\ufffd"}', None, '{"message":"b"}']
    spans = [timedelta(seconds=1.5), None, timedelta(0)]
    head = ("w", _IDS, attempts)
    assert work.heartbeat("w", _IDS, attempts).parameters == head
    failed = work.fail(
        "w", _IDS, attempts, errors=errors, retryable=[True, False, True], delays=[1.5, None, 0.0]
    )
    assert failed.parameters == (*head, texts, [True, False, True], spans)
    assert work.hand_over("w", _IDS, attempts, errors).parameters == (*head, texts)
    snoozed = work.snooze("w", _IDS, attempts, [1.5, None, 0.0], "a\0")
    assert snoozed.parameters == (*head, spans, "a\ufffd")
    released = work.release("w", _IDS, attempts, "a\0", unstarted=True)
    assert released.parameters == (*head, "a\ufffd", True)
    cancelled = work.acknowledge_cancel("w", _IDS, attempts, ["a\0", None, "c"])
    assert cancelled.parameters == (*head, ["a\ufffd", None, "c"])
    done = work.complete("w", _IDS, attempts, ("1", None, "2"), strict=True)
    assert done.parameters == ("w", Uuids.of(_IDS), Integers.of(attempts), ["1", None, "2"], True)
    assert work.complete("w", _IDS, attempts).parameters[3] is None


def test_a_claim_reads_jobs_and_the_position_of_the_last_row() -> None:
    call = work.claim("w", ("b", "a"), 5, None, "{}", limited=2)
    assert call.parameters == ("w", ["b", "a"], 5, None, "{}", 2)
    blank = (None,) * 16
    job = (
        _IDS[0],
        2,
        "work",
        "{}",
        "default",
        None,
        None,
        None,
        0,
        5,
        _NOW,
        _NOW,
        _NOW,
        None,
        None,
        _IDS[1],
    )
    claimed = call.decode([(*job, None), (*blank, '{"a":1}')])
    assert [(one.job_id, one.workflow_id) for one in claimed.jobs] == [(_IDS[0], _IDS[1])]
    assert claimed.position == '{"a":1}'
    assert call.decode([]).jobs == []
    assert call.decode([]).position is None


def test_recent_changes_are_distinguished_by_their_time() -> None:
    call = recent.recently(_NOW, task="t", queue=None, most=3)
    assert call.parameters == (_NOW, "t", None, 3)
    job = (None, None, _IDS[0], "ready", "t", "q", None, 1, _NOW, *(None,) * 4, "w", None, None)
    event = (
        _NOW,
        "kind",
        _IDS[1],
        "dead",
        "t",
        "q",
        "x",
        4,
        *(None,) * 4,
        "w",
        None,
        None,
        {"a": 1},
    )
    found = call.decode([(_NOW, *(None,) * 15), job, event])
    assert found.now == _NOW
    assert [one.job_id for one in found.jobs] == [_IDS[0]]
    assert found.events == [Event(_NOW, "kind", _IDS[1], "dead", "t", "q", "x", 4, "w", {"a": 1})]


def test_a_list_of_jobs_passes_the_names_of_states() -> None:
    nobody = {"task": None, "queue": None, "tenant": None, "before": None}
    call = read.list_jobs(states=[JobState.DEAD, JobState.READY], limit=3, **nobody)
    assert call.parameters == (["dead", "ready"], None, None, None, 3, None)
    assert read.list_jobs(states=None, limit=3, **nobody).parameters[0] is None
    assert read.job(_IDS[0]).decode([]) is None


def test_a_policy_names_only_what_is_set_and_spans_in_seconds() -> None:
    policy = TaskPolicy("t", lease=1.5, backoff=Backoff(base=2.0))
    (document,) = register_tasks([policy, TaskPolicy("u", hard_limit=60)]).parameters
    assert '"lease":"1.500000 seconds"' in document
    assert '"hard_limit":"60.000000 seconds"' in document
    assert "null" not in document
    assert '"backoff":{"base":2.0,"factor":2.0,"cap":600.0,"jitter":0.2}' in document
    assert document.count('"lease"') == document.count('"backoff"') == 1
