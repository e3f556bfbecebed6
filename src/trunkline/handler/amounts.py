"""Amounts of a cost, checked before they are sent to the engine."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from trunkline.errors import InvalidCost

__all__ = ["amounts"]

_LARGEST: Final = 10**12


def amounts(**values: float | Decimal | None) -> dict[str, Any]:
    """Return the amounts that are not None; refuse negative ones and fractions."""
    checked: dict[str, Any] = {}
    for name, amount in values.items():
        if amount is None:
            continue
        kinds = (int, float, Decimal) if name == "cost" else (int,)
        # JSON has no Decimal; a float keeps the digits of any real amount of money.
        value = float(amount) if isinstance(amount, Decimal) else amount
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < _LARGEST:
            raise InvalidCost(
                "cost is not valid",
                hint=f"Pass {name} as a number from 0 on"
                + ("." if name == "cost" else " without a fraction."),
                detail={"amount": name, "got": repr(value)},
            )
        checked[name] = value
    return checked
