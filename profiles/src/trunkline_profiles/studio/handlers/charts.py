"""The base data of an order: the positions of Sun and Moon at the births of both people.

The formulas are the short ones of the Astronomical Almanac: the Sun is exact to a hundredth of a
degree, the Moon to two degrees, which names signs, mansions and gates well enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import radians, sin
from typing import Any, Final

import msgspec

from trunkline_profiles.studio.handlers.problems import BadOrder

__all__ = ["SYSTEMS", "BaseData", "Chart", "Person", "base_data", "chart"]

_SIGNS: Final = (
    *("Aries", "Taurus", "Gemini", "Cancer", "Leo", "Virgo"),
    *("Libra", "Scorpio", "Sagittarius", "Capricorn", "Aquarius", "Pisces"),
)
_MANSIONS: Final = (
    *("Ashvini", "Bharani", "Krittika", "Rohini", "Mrigashira", "Ardra", "Punarvasu", "Pushya"),
    *("Ashlesha", "Magha", "Purva Phalguni", "Uttara Phalguni", "Hasta", "Chitra", "Svati"),
    *("Vishakha", "Anuradha", "Jyeshtha", "Mula", "Purva Ashadha", "Uttara Ashadha", "Shravana"),
    *("Dhanishta", "Shatabhisha", "Purva Bhadrapada", "Uttara Bhadrapada", "Revati"),
)
# The gates of the wheel in their order, from 2 degrees of Aquarius on.
_GATES: Final = (
    *(41, 19, 13, 49, 30, 55, 37, 63, 22, 36, 25, 17, 21, 51, 42, 3, 27, 24, 2, 23, 8, 20, 16, 35),
    *(45, 12, 15, 52, 39, 53, 62, 56, 31, 33, 7, 4, 29, 59, 40, 64, 47, 6, 46, 18, 48, 57, 32, 50),
    *(28, 44, 1, 43, 14, 34, 9, 5, 26, 11, 10, 58, 38, 54, 61, 60),
)
_FIRST_GATE: Final = 302.0
_J2000: Final = datetime(2000, 1, 1, 12, tzinfo=UTC)


class Person(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """One of the two people of an order."""

    name: str
    # ISO 8601; without a time of day noon, without an offset UTC.
    born: str


class Chart(msgspec.Struct, frozen=True):
    """One person in every system of the order."""

    name: str
    facts: dict[str, dict[str, str]]


class BaseData(msgspec.Struct, frozen=True):
    """What all texts of an order build on; computed once."""

    charts: list[Chart]


def base_data(person1: Person, person2: Person, systems: Sequence[str]) -> BaseData:
    """The charts of both people."""
    return BaseData([chart(person, systems) for person in (person1, person2)])


def chart(person: Person, systems: Sequence[str]) -> Chart:
    """The chart of one person."""
    unknown = [system for system in systems if system not in SYSTEMS]
    if unknown:
        raise BadOrder(f"There is no system {unknown[0]!r}; there are: {', '.join(SYSTEMS)}")
    days = (_moment(person.born) - _J2000).total_seconds() / 86400
    sun, moon = _sun(days), _moon(days)
    facts = {system: SYSTEMS[system](sun, moon, person) for system in systems}
    return Chart(person.name, facts)


def _moment(born: str) -> datetime:
    try:
        moment = datetime.fromisoformat(born)
    except ValueError as error:
        raise BadOrder(f"{born!r} is no time of birth") from error
    if len(born) <= 10:
        moment = moment.replace(hour=12)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _sun(days: float) -> float:
    """The ecliptic longitude of the Sun, in degrees."""
    anomaly = radians(357.528 + 0.9856003 * days)
    mean = 280.460 + 0.9856474 * days
    return (mean + 1.915 * sin(anomaly) + 0.020 * sin(2 * anomaly)) % 360


def _moon(days: float) -> float:
    """The ecliptic longitude of the Moon, in degrees."""
    anomaly = radians(134.963 + 13.064993 * days)
    return (218.316 + 13.176396 * days + 6.289 * sin(anomaly)) % 360


def _sign(longitude: float) -> str:
    return _SIGNS[int(longitude // 30) % 12]


def _western(sun: float, moon: float, _: Person) -> dict[str, str]:
    return {"sun": _sign(sun), "moon": _sign(moon)}


def _vedic(sun: float, moon: float, person: Person) -> dict[str, str]:
    # The ayanamsa of Lahiri grows by 50.29 seconds of arc a year.
    offset = 23.857 + 50.29 / 3600 * (_moment(person.born).year - 2000)
    sun, moon = (sun - offset) % 360, (moon - offset) % 360
    return {"sun": _sign(sun), "moon": _sign(moon), "mansion": _MANSIONS[int(moon * 27 / 360) % 27]}


def _human_design(sun: float, moon: float, _: Person) -> dict[str, str]:
    found = {}
    for body, longitude in {"sun": sun, "moon": moon}.items():
        place = ((longitude - _FIRST_GATE) % 360) * 64 / 360
        found[body] = f"gate {_GATES[int(place) % 64]}, line {int(place % 1 * 6) + 1}"
    return found


def _numerology(_: float, __: float, person: Person) -> dict[str, str]:
    digits = sum(int(c) for c in _moment(person.born).strftime("%Y%m%d"))
    while digits > 9 and digits not in {11, 22, 33}:
        digits = sum(int(c) for c in str(digits))
    return {"path": str(digits)}


# Computes the facts of one system from the longitudes of Sun and Moon.
SYSTEMS: Final[Mapping[str, Callable[[float, float, Person], dict[str, str]]]] = {
    "human_design": _human_design,
    "numerology": _numerology,
    "vedic": _vedic,
    "western": _western,
}


def as_text(data: BaseData) -> str:
    """The charts as lines for a model."""
    return "\n".join(
        f"{one.name}, {system}: " + ", ".join(f"{name} {value}" for name, value in facts.items())
        for one in data.charts
        for system, facts in one.facts.items()
    )


def as_plain(data: BaseData) -> Any:
    """The charts as JSON."""
    return msgspec.to_builtins(data)
