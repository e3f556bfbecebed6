"""The cron functions against cronsim, over random expressions, time zones and moments."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import LiteralString

import psycopg
import pytest
from cronsim import CronSim
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg import Connection

from tests.property.cron_expressions import (
    Case,
    answer,
    change_cases,
    expressions,
    whole_hour_cases,
)
from tests.support import databases
from tests.support.servers import Server

INVALID_CRON = "TL012"
UNKNOWN_TIME_ZONE = "TL023"

# One example is one statement with many questions: a round trip costs more than an answer.
_BATCH = 25
_quick = settings(
    max_examples=40,
    deadline=None,
    # A failure names the questions that got a wrong answer; making the batch smaller takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)

_ASK = """
select d.due
from unnest(%s::text[], %s::text[], %s::timestamptz[])
  with ordinality as q (cron, zone, after, place)
left join lateral trunkline.next_due(
  p_cron => q.cron, p_time_zone => q.zone, p_after => q.after, p_count => 1
) as d (due) on true
order by q.place
"""


@pytest.fixture(scope="module")
def connection(server: Server, template: str) -> Iterator[Connection]:
    """One database for all: the functions read no table and write none."""
    with databases.fresh(server, template) as database:
        found = database.connect(role="trunkline_producer")
        # The answers must not depend on the session's own time zone, however odd.
        found.execute("set timezone = 'Asia/Kathmandu'")
        yield found


def ask(connection: Connection, cases: Sequence[Case]) -> list[datetime]:
    rows = connection.execute(
        _ASK,
        (
            [case.cron for case in cases],
            [case.zone for case in cases],
            [case.after for case in cases],
        ),
    )
    return [row[0].astimezone(UTC) for row in rows]


def expect(connection: Connection, cases: Sequence[Case]) -> None:
    known = [(case, due) for case in cases if (due := answer(case)) is not None]
    found = ask(connection, [case for case, _ in known])
    wrong = [
        (case, due.astimezone(UTC), given)
        for (case, due), given in zip(known, found, strict=True)
        if due.astimezone(UTC) != given
    ]
    assert not wrong


def refusal(connection: Connection, cron: str) -> str | None:
    try:
        ask(connection, [Case(cron, "UTC", datetime(2026, 1, 1, tzinfo=UTC))])
    except psycopg.Error as error:
        return error.sqlstate
    return None


@_quick
@given(st.lists(whole_hour_cases, min_size=1, max_size=_BATCH))
def test_next_due_time_is_that_of_cronsim(connection: Connection, cases: list[Case]) -> None:
    expect(connection, cases)


@_quick
@given(st.lists(change_cases, min_size=1, max_size=_BATCH))
def test_changes_of_the_clocks_are_taken_as_debian_cron_does(
    connection: Connection, cases: list[Case]
) -> None:
    expect(connection, cases)


@_quick
@given(
    expressions,
    st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from(["", *"0123456789*/,-#LWAJUN@? "])),
        min_size=1,
        max_size=3,
    ),
)
def test_what_cronsim_refuses_is_refused_and_nothing_else(
    connection: Connection, cron: str, edits: list[tuple[int, str]]
) -> None:
    for place, character in edits:
        cron = cron[: place % len(cron)] + character + cron[place % len(cron) + 1 :]
    # Six fields are seconds first to cronsim; we have no seconds.
    valid = len(cron.split()) == 5 and answer(Case(cron, "UTC", datetime(2026, 1, 1, tzinfo=UTC)))
    assert refusal(connection, cron) == (None if valid else INVALID_CRON)


@pytest.mark.parametrize(
    ("alias", "cron"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        (" @Hourly ", "0 * * * *"),
    ],
)
def test_alias_is_short_for_an_expression(connection: Connection, alias: str, cron: str) -> None:
    after = datetime(2026, 10, 24, 20, 30, tzinfo=UTC)
    short, long = ask(
        connection, [Case(alias, "Europe/Paris", after), Case(cron, "Europe/Paris", after)]
    )
    assert short == long


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "   ",
        "@reboot",
        "@",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "5-1 * * * *",
        "99999999999999999999 * * * *",
        "1,,2 * * * *",
        "\u0661 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "0 0 */31 * MON#2",
        "1," * 600 + "1 * * * *",
    ],
)
def test_what_can_never_be_due_is_refused(connection: Connection, cron: str) -> None:
    assert refusal(connection, cron) == INVALID_CRON


@pytest.mark.parametrize(
    "zone",
    ["", "Europe/Pariss", "Mars/Base", "CET", "EST", "UTC+3", "Europe/Paris2", "+02", "right/UTC"],
)
def test_only_full_names_of_time_zones_are_taken(connection: Connection, zone: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        ask(connection, [Case("0 * * * *", zone, datetime(2026, 1, 1, tzinfo=UTC))])
    assert caught.value.sqlstate == UNKNOWN_TIME_ZONE


@pytest.mark.parametrize(
    ("cron", "after", "due"),
    [
        # Paris, 29 March 2026: 02:00 to 03:00 is left out.
        ("30 2 * * *", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]),
        ("*/30 2 * * *", "2026-03-28T12:00Z", ["2026-03-30T00:00Z", "2026-03-30T00:30Z"]),
        # Paris, 25 October 2026: 02:00 to 03:00 comes twice.
        ("30 2 * * *", "2026-10-24T12:00Z", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]),
        ("30 * * * *", "2026-10-25T00:00Z", ["2026-10-25T00:30Z", "2026-10-25T01:30Z"]),
        ("30 */2 * * *", "2026-10-25T00:00Z", ["2026-10-25T00:30Z", "2026-10-25T01:30Z"]),
        ("10 * * * *", "2026-10-25T00:50Z", ["2026-10-25T01:10Z", "2026-10-25T02:10Z"]),
    ],
)
def test_changes_of_the_clocks_in_paris(
    connection: Connection, cron: str, after: str, due: list[str]
) -> None:
    rows = connection.execute(
        "select trunkline.next_due(p_cron => %s, p_time_zone => %s, p_after => %s, p_count => 2)",
        (cron, "Europe/Paris", datetime.fromisoformat(after)),
    )
    assert [row[0] for row in rows] == [datetime.fromisoformat(text) for text in due]


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 L * *",
        "0 0 LW * *",
        "0 0 LW,15 2 *",
        "0 0 * * 5L",
        "0 0 * * 0L,7#1",
        "0 0 * * MON#5",
        "0 0 13 * FRI",
        "0 0 */13 * FRI",
        "0 0 13 * */5",
        "0 0 29 2 *",
        "0 0 29 2 */3",
        "59 23 31 * *",
        "5/20 3-3/7 * * *",
        "0 0 * * 5-7",
        "0 0 * JAN-MAR/2,Dec sun",
    ],
)
def test_days_of_long_stretches_are_those_of_cronsim(connection: Connection, cron: str) -> None:
    after = datetime(2026, 1, 1, tzinfo=UTC)
    rows = connection.execute(
        "select trunkline.next_due(p_cron => %s, p_after => %s, p_count => 60)", (cron, after)
    )
    assert [row[0] for row in rows] == list(islice(CronSim(cron, after), 60))


def test_leap_day_is_found_eight_years_ahead(connection: Connection) -> None:
    case = Case("0 0 29 2 *", "UTC", datetime(2096, 3, 1, tzinfo=UTC))
    assert ask(connection, [case]) == [datetime(2104, 2, 29, tzinfo=UTC)]


def test_due_times_follow_one_another(connection: Connection) -> None:
    rows = connection.execute(
        "select trunkline.next_due(p_cron => '30 * * * *', p_time_zone => 'Europe/Paris',"
        " p_after => '2026-10-24 22:00Z', p_count => 100)"
    )
    first = datetime(2026, 10, 24, 22, 30, tzinfo=UTC)
    assert [row[0] for row in rows] == [first + timedelta(hours=hours) for hours in range(100)]


@pytest.mark.parametrize(
    ("arguments", "state"),
    [
        ("p_count => 0", "TL006"),
        ("p_count => 1001", "TL006"),
        ("p_count => null", "TL006"),
        ("p_after => 'infinity'", "TL028"),
        ("p_after => '1066-10-14 00:00Z'", "TL028"),
    ],
)
def test_arguments_out_of_range_are_refused(
    connection: Connection, arguments: LiteralString, state: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("select trunkline.next_due(p_cron => '@daily', " + arguments + ")")
    assert caught.value.sqlstate == state
