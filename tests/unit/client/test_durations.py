"""Lengths of time as people write them."""

from datetime import timedelta
from typing import Any

import pytest

from trunkline.errors import InvalidDuration
from trunkline.model import seconds


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("500ms", 0.5),
        ("10s", 10),
        ("1.5m", 90),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        (" 5m ", 300),
        (timedelta(minutes=1), 60),
        (0, 0),
        (2.5, 2.5),
    ],
)
def test_what_is_a_length_of_time(value: Any, expected: float) -> None:
    assert seconds(value) == expected


@pytest.mark.parametrize(
    "value",
    ["", "5", "m", "5 m", "1w", "-1s", "1m tomorrow", "5m5", -1, True, None, float("nan"),
     float("inf"), timedelta(days=4000), [], b"5s"],
)  # fmt: skip
def test_what_is_none(value: Any) -> None:
    with pytest.raises(InvalidDuration) as caught:
        seconds(value)
    assert caught.value.code == "invalid_duration"
    assert repr(value) in str(caught.value)
    assert "500ms" in caught.value.hint
