"""Cron expressions, moments and answers for the tests of the cron functions.

The answers come from cronsim, which follows Debian's cron when the clocks change. Where its leaps
pass over minutes that a clock did show (zones that change by half an hour), the answer is found by
walking through real time minute by minute.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from hypothesis import strategies as st

WHOLE_HOUR_ZONES = ("UTC", "Europe/Paris", "America/New_York")
HALF_HOUR_ZONE = "Australia/Lord_Howe"
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Case:
    """A question to the database."""

    cron: str
    zone: str
    after: datetime


def changes(zone: str) -> list[datetime]:
    """When the clocks of a zone change in 2026 and 2027."""
    found = []
    clock = ZoneInfo(zone)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    while moment.year < 2028:
        after = moment + 30 * _MINUTE
        if moment.astimezone(clock).utcoffset() != after.astimezone(clock).utcoffset():
            found.append(after)
        moment = after
    return found


_CHANGES = {zone: changes(zone) for zone in (*WHOLE_HOUR_ZONES, HALF_HOUR_ZONE)}


def follows_the_clock(cron: str) -> bool:
    """Whether a due time is every time the clock shows it, and not a fixed time of the day."""
    minute, hour, *_ = cron.split()
    return minute.startswith("*") or hour.startswith("*")


def answer(case: Case) -> datetime | None:
    """The first due time after the moment, or None when there is none or no such expression."""
    try:
        if case.zone == HALF_HOUR_ZONE and follows_the_clock(case.cron):
            return _walk(case)
        times = CronSim(case.cron, case.after.astimezone(ZoneInfo(case.zone)))
        # Within an hour that comes twice cronsim may look back, to the first of the two.
        return next((due for due in times if due.astimezone(UTC) > case.after), None)
    except CronSimError:
        return None


def _walk(case: Case) -> datetime | None:
    clock = ZoneInfo(case.zone)
    # Cronsim without a time zone: the plain calendar, in which nothing is left out or repeated.
    start = case.after.astimezone(clock).replace(tzinfo=None)
    end = start + timedelta(days=3)
    due = set(takewhile(lambda local: local <= end, CronSim(case.cron, start - timedelta(days=1))))
    moment = case.after.replace(second=0, microsecond=0) + _MINUTE
    while moment <= case.after + timedelta(days=2):
        if moment.astimezone(clock).replace(tzinfo=None) in due:
            return moment
        moment += _MINUTE
    return None


def _numbers(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    plain = st.integers(low, high).map(str)
    if not names:
        return plain
    cased = st.sampled_from(names).flatmap(lambda n: st.sampled_from([n, n.lower(), n.title()]))
    return plain | cased


def _ranges(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    pairs = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    plain = pairs.map(lambda pair: f"{pair[0]}-{pair[1]}")
    if not names:
        return plain
    places = st.tuples(*[st.integers(0, len(names) - 1)] * 2).map(sorted)
    return plain | places.map(lambda pair: f"{names[pair[0]]}-{names[pair[1]]}")


def _fields(
    low: int, high: int, names: tuple[str, ...] = (), extra: st.SearchStrategy[str] | None = None
) -> st.SearchStrategy[str]:
    numbers = _numbers(low, high, names)
    steps = st.integers(1, high + 3)
    term = st.one_of(
        numbers,
        _ranges(low, high, names),
        st.builds("{}/{}".format, st.just("*") | numbers | _ranges(low, high, names), steps),
    )
    if extra is not None:
        term |= extra
    lists = st.lists(term, min_size=1, max_size=4).map(",".join)
    return st.one_of(st.just("*"), numbers, term, lists)


_LAST_DAYS = st.sampled_from(["L", "LW", "l", "L/3"])
_NTH_WEEKDAYS = st.builds("{}#{}".format, _numbers(0, 7, WEEKDAYS), st.integers(1, 5))
_LAST_WEEKDAYS = st.integers(0, 7).map("{}L".format)

MINUTES = _fields(0, 59)
HOURS = _fields(0, 23)

expressions = st.builds(
    "{} {} {} {} {}".format,
    MINUTES,
    HOURS,
    _fields(1, 31, extra=_LAST_DAYS),
    _fields(1, 12, MONTHS),
    _fields(0, 7, WEEKDAYS, _NTH_WEEKDAYS | _LAST_WEEKDAYS),
)
daily_expressions = st.builds("{} {} * * *".format, MINUTES, HOURS)


def _near_changes(zone: str) -> st.SearchStrategy[datetime]:
    seconds = st.integers(-4 * 3600, 4 * 3600).map(lambda count: timedelta(seconds=count))
    return st.builds(lambda change, shift: change + shift, st.sampled_from(_CHANGES[zone]), seconds)


_ANY_TIME = st.integers(800_000_000, 2_800_000_000).map(lambda at: datetime.fromtimestamp(at, UTC))

whole_hour_cases = st.sampled_from(WHOLE_HOUR_ZONES).flatmap(
    lambda zone: st.builds(
        Case,
        expressions,
        st.just(zone),
        _near_changes(zone) | _ANY_TIME if _CHANGES[zone] else _ANY_TIME,
    )
)
change_cases = st.sampled_from([zone for zone in _CHANGES if _CHANGES[zone]]).flatmap(
    lambda zone: st.builds(Case, daily_expressions, st.just(zone), _near_changes(zone))
)
