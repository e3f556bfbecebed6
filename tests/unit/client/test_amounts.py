"""Amounts of estimates and settlements, before anything is asked of the engine."""

from decimal import Decimal
from typing import Any

import pytest

from trunkline.client.flow import amounts, wait_bound
from trunkline.db.calls.flow import settle
from trunkline.errors import InvalidArgument, InvalidDuration

_GRANT: Any = "00000000-0000-0000-0000-000000000000"


def test_only_what_was_given_is_said_and_zero_is_an_amount() -> None:
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
    with pytest.raises(InvalidArgument) as caught:
        amounts(**{name: value})
    assert caught.value.detail["amount"] == name
    assert name in caught.value.hint


def test_how_long_to_wait() -> None:
    assert [wait_bound(one) for one in (True, False, "30s", 2)] == [None, 0.0, 30.0, 2.0]
    with pytest.raises(InvalidDuration):
        wait_bound("a while")
