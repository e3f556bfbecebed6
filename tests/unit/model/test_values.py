"""Small values: states, requests, texts of refusals."""

from datetime import timedelta

import pytest

from trunkline.errors import InvalidDuration, Refusal, TrunklineError, UnknownTask
from trunkline.model import Backoff, Breaker, JobState, as_request, seconds
from trunkline.model.duration import interval


@pytest.mark.parametrize("state", JobState)
def test_a_state_is_final_when_nothing_follows(state: JobState) -> None:
    assert state.final is (state in {"completed", "cancelled", "dead"})


def test_a_request_has_only_what_is_given() -> None:
    assert as_request({"task": "t", "queue": None, "delay": "1m", "other": 5, "priority": 0}) == {
        "task": "t",
        "delay": "60.000000 seconds",
        "priority": 0,
    }
    assert as_request({}) == {}
    assert list(as_request({"queue": "q", "task": "t"})) == ["task", "queue"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), ("1m", timedelta(minutes=1)), (0, timedelta(0)), (1.5, timedelta(seconds=1.5))],
)
def test_a_length_of_time_as_an_interval(
    value: str | float | None, expected: timedelta | None
) -> None:
    assert interval(value) == expected


def test_the_longest_time_is_ten_years() -> None:
    longest = 10 * 365 * 86400
    assert seconds(longest) == longest
    with pytest.raises(InvalidDuration):
        seconds(longest + 1)


def test_backoff_and_breaker_are_written_in_seconds() -> None:
    assert Backoff("1m", 3.0, "1h", 0.5).as_json() == {
        "base": 60.0,
        "factor": 3.0,
        "cap": 3600.0,
        "jitter": 0.5,
    }
    assert Breaker(5, 0.5, "1m", "2m").as_parts() == {
        "breaker_failures": 5,
        "breaker_share": 0.5,
        "breaker_window": "60.000000 seconds",
        "breaker_probe_after": "120.000000 seconds",
    }


def test_a_refusal_shows_its_facts_but_for_the_code() -> None:
    assert str(Refusal("no", detail={"code": "x", "task": "t", "size": 5})) == "no (task t, size 5)"
    assert str(Refusal("no", detail={"code": "x"})) == str(Refusal("no")) == "no"
    assert Refusal("no", detail={"a": 1}).detail == {"a": 1}
    assert Refusal("no").detail == {}


@pytest.mark.parametrize(("length", "cut"), [(199, False), (200, False), (201, True)])
def test_a_long_fact_is_cut(length: int, cut: bool) -> None:
    text = "x" * length
    shown = "x" * 199 + "…" if cut else text
    assert str(Refusal("no", detail={"a": text})) == f"no (a {shown})"


def test_a_separate_hint_replaces_that_of_the_class() -> None:
    assert TrunklineError("x").hint == ""
    assert TrunklineError("x", hint="do").hint == "do"
    assert TrunklineError("x", hint="").hint == ""
    assert UnknownTask("x").hint == UnknownTask.hint
    assert UnknownTask("x", hint="do").hint == "do"
    assert UnknownTask("x").message == "x"
