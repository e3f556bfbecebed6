"""Options and requests: what is sent, and what is refused before anything is sent."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from trunkline import Trunkline
from trunkline.client.request import PLAIN, Options, Request, document, payloads
from trunkline.errors import InvalidArgument, InvalidDuration

_AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
_ZONE = "Pass an aware datetime, such as datetime.now(UTC) + timedelta(hours=1)."


def _sent(**options: Any) -> dict[str, Any]:
    request: Request[Any] = Request("t", b"{}", PLAIN.but(**options), lambda value: value)
    (job,) = json.loads(document([request]))
    assert job.pop("task") == "t"
    assert job.pop("payload") == {}
    found: dict[str, Any] = job
    return found


def test_options_are_sent_as_the_engine_takes_them() -> None:
    assert _sent() == {}
    assert _sent(priority=None, tags=None) == {}
    given = {
        "priority": 0,
        "delay": "1h30m",
        "queue": "q",
        "unique_key": "u",
        "idempotency_key": "i",
        "tenant": "x",
        "correlation_id": "c",
        "max_attempts": 3,
        "cost": {"tokens": 5},
        "accepted": False,
    }
    assert _sent(**given) == {**given, "delay": "5400.000000 seconds"}
    at = "2026-05-01T12:00:00Z"
    assert _sent(tags=("b", "a"), run_at=_AT) == {"tags": ["b", "a"], "run_at": at}
    assert _sent(expires=_AT) == {"expires_at": at}
    assert "connection" not in _sent(connection=object())


def test_a_length_of_time_expires_from_now_on() -> None:
    before = datetime.now(UTC)
    found = datetime.fromisoformat(_sent(expires="10m")["expires_at"])
    assert before + timedelta(minutes=10) <= found <= datetime.now(UTC) + timedelta(minutes=10)


def test_requests_keep_their_order() -> None:
    requests: list[Request[Any]] = [
        Request(name, name.encode(), Options(queue=queue), lambda value: value)
        for name, queue in (("3", "c"), ("1", None), ("2", "b"))
    ]
    assert payloads(requests) == "[3,1,2]"
    assert [job.get("queue") for job in json.loads(document(requests))] == ["c", None, "b"]
    assert payloads([]) == "[]"


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("priority", "1", "int"),
        ("priority", True, "int"),
        ("priority", 1.0, "int"),
        ("max_attempts", "3", "int"),
        ("queue", 1, "str"),
        ("unique_key", b"x", "str"),
        ("idempotency_key", 5, "str"),
        ("tenant", True, "str"),
        ("correlation_id", 5, "str"),
        ("tags", "ab", "list of str"),
        ("tags", [1], "list of str"),
        ("tags", ["a", None], "list of str"),
        ("cost", [1], 'dictionary such as {"tokens": 1200}'),
        ("accepted", 1, "bool"),
    ],
)
def test_an_option_of_the_wrong_type_is_named(option: str, value: Any, wanted: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        PLAIN.but(**{option: value})
    assert refused.value.message == "an option has the wrong type"
    assert refused.value.hint == f"Pass {option} as {wanted}."
    assert refused.value.detail == {"option": option, "got": repr(value)}


@pytest.mark.parametrize("tags", [["a"], ("a",), {"a"}, frozenset({"a"}), []])
def test_tags_may_be_any_collection(tags: Any) -> None:
    assert PLAIN.but(tags=tags).tags == tags


@pytest.mark.parametrize("option", ["run_at", "expires"])
def test_an_instant_needs_a_zone(option: str) -> None:
    wrong = datetime(2026, 5, 1)  # noqa: DTZ001 - that is the mistake
    with pytest.raises(InvalidArgument) as refused:
        PLAIN.but(**{option: wrong})
    assert refused.value.message == f"{option} has no time zone"
    assert refused.value.hint == _ZONE
    assert refused.value.detail == {option: str(wrong)}
    PLAIN.but(**{option: datetime(2026, 5, 1, tzinfo=timezone(timedelta(hours=2)))})


def test_what_is_no_instant_or_length_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="run_at has no time zone"):
        PLAIN.but(run_at="tomorrow")
    for option in ("delay", "expires"):
        with pytest.raises(InvalidDuration):
            PLAIN.but(**{option: "soon"})
        PLAIN.but(**{option: 0})


def test_unknown_options_are_named_with_all_that_are_known() -> None:
    with pytest.raises(InvalidArgument) as refused:
        PLAIN.but(zeal=1, colour=2, queue="q")
    assert refused.value.message == "unknown option"
    assert refused.value.detail == {"option": "colour, zeal"}
    assert refused.value.hint.startswith("The options are priority, delay, run_at, expires, queue")


def test_what_cannot_be_encoded_is_refused() -> None:
    request: Request[Any] = Request("t", b"{}", Options(cost={"x": object()}), lambda value: value)  # type: ignore[dict-item]
    with pytest.raises(InvalidArgument) as refused:
        document([request])
    assert refused.value.message == "an option has an invalid value"
    assert refused.value.hint == (
        "Keys, tags, queue and tenant are text, priority and max_attempts whole numbers."
    )
    assert "object" in refused.value.detail["problem"]


def test_a_request_has_the_options_of_the_task() -> None:
    app = Trunkline("postgresql://nobody@nowhere/none")

    @app.task(limit="openai", cost=lambda a: {"tokens": a})
    def work(a: int) -> None: ...

    assert work.request(5).options.cost == {"tokens": 5}
    assert work.options(cost={"tokens": 1}).request(5).options.cost == {"tokens": 1}
    assert work.request(5).payload == b'{"a":5}'
    kept = work.options(queue="q").options(priority=3).options(queue="r")
    assert kept.request(5).options.queue == "r"
    assert kept.request(5).options.priority == 3

    @app.task
    def plain(a: set[int]) -> None: ...

    assert plain.request({3, 1, 2}).options is PLAIN
    ordered = plain.options(idempotency_key="k").request({30, 1, 200})
    assert ordered.payload == b'{"a":[1,30,200]}'
