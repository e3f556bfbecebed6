"""Amounts of estimates and settlements, before anything is asked of the engine."""

from decimal import Decimal
from typing import Any

import pytest

from trunkline.db.calls.flow import settle
from trunkline.errors import InvalidCost, InvalidDuration
from trunkline.handler.amounts import amounts
from trunkline.handler.patience import patience

_GRANT: Any = "00000000-0000-0000-0000-000000000000"


def test_only_given_amounts_are_sent_and_zero_is_an_amount() -> None:
    assert amounts(tokens=0, requests=None, units=5, cost=None) == {"tokens": 0, "units": 5}


@pytest.mark.parametrize("cost", [Decimal("0.0021"), 0.0021])
def test_money_keeps_its_digits(cost: Any) -> None:
    sent = settle(_GRANT, amounts(cost=cost)).parameters[1]
    assert sent == '{"cost":0.0021}'


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("tokens", one) for one in (-1, 1.0, "5", True, Decimal(1), 10**12)),
        *(("cost", one) for one in (-0.1, float("nan"), Decimal("NaN"), float("inf"), "1")),
    ],
)
def test_what_is_no_amount_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidCost) as caught:
        amounts(**{name: value})
    assert caught.value.detail["amount"] == name
    assert name in caught.value.hint


def test_how_long_to_wait() -> None:
    waits = (True, False, "30s", 2, None)
    assert [patience(one).bound for one in waits] == [None, 0.0, 30.0, 2.0, 90.0]
    with pytest.raises(InvalidDuration):
        patience("a while")


@pytest.mark.parametrize("reason", ["quota", "maintenance", "disabled"])
def test_a_call_that_asks_to_wait_waits_for_a_lasting_reason(reason: str) -> None:
    assert patience(None).ends(reason, None, 0.0)
    assert not patience(True).ends(reason, 1e6, 1e6)
    assert not patience("30s").ends(reason, 29.0, 0.0)
    assert patience("30s").ends(reason, 31.0, 0.0)


def test_the_rest_is_waited_for_as_long_as_there_will_be_room_in_time() -> None:
    assert not patience(None).ends("requests_per_minute", 62.0, 0.0)
    assert patience(None).ends("requests_per_hour", 91.0, 0.0)
    assert not patience(None).ends("concurrency", None, 89.0)
    assert patience(None).ends("concurrency", None, 90.0)
    assert patience(None).pause(5.0, 88.0) == 2.0
