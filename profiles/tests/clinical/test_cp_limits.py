"""Limits of providers in the words of the source: rows, permits, windows, settlement."""

from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from profiles.tests.clinical.conftest import AI, Clinic
from tests.support.databases import Database
from tests.support.waiting import together
from trunkline import profiles
from trunkline.profiles import installer

SET = "update clinical.api_rate_limits set {} where api_endpoint = 'gpt-4o-mini'"


def change(clinic: Clinic, what: str) -> None:
    clinic.operator.connection.execute(SET.format(what).encode())


def test_cp_51_settings_and_their_defaults(clinic: Clinic) -> None:
    """CP-51: an endpoint of which only the name is given."""
    clinic.operator.connection.execute(
        "insert into clinical.api_rate_limits (provider_name, api_endpoint) values ('a', 'b')"
    )
    row = clinic.limit("a/b")
    assert (row.requests_per_minute, row.concurrent_requests) == (60, 10)
    assert [row.requests_per_hour, row.tokens_per_minute, row.tokens_per_hour] == [None] * 3
    assert str(row.backpressure_threshold) == "0.80"
    assert (row.backpressure_delay_seconds, row.queue_depth_limit, row.status) == (
        5,
        1000,
        "active",
    )
    assert row.queue_depth_refuses


def test_cp_52_what_is_used_is_shown(clinic: Clinic) -> None:
    """CP-52: all of it zero at first; counted at a call, and a refusal apart."""
    clinic.operator.connection.execute(
        "insert into clinical.api_rate_limits (provider_name, api_endpoint, requests_per_hour,"
        " tokens_per_hour, concurrent_requests) values ('a', 'b', 100, 100000, 1)"
    )
    row = clinic.limit("a/b")
    used = ("requests_minute", "requests_hour", "tokens_minute", "tokens_hour")
    assert [getattr(row, f"current_{name}") for name in used] == [0] * 4
    assert (row.active_requests, row.rate_limit_violations) == (0, 0)
    assert row.last_rate_limit_hit is None
    now = clinic.operator.clock()
    assert now - row.minute_reset_at >= timedelta(minutes=1)
    assert now - row.hour_reset_at >= timedelta(hours=1)
    assert now - row.created_at < timedelta(minutes=1)
    assert row.updated_at >= row.created_at - timedelta(seconds=1)
    assert [clinic.acquire(700, "a/b").granted for _ in range(2)] == [True, False]
    row = clinic.limit("a/b")
    assert [getattr(row, f"current_{name}") for name in used] == [1, 1, 700, 700]
    assert (row.active_requests, row.rate_limit_violations) == (1, 1)
    assert row.last_rate_limit_hit >= now


def test_cp_105_ids_and_decimals(clinic: Clinic) -> None:
    """CP-105: a uuid; a threshold of two decimals, above 0 and at most 1."""
    rows = clinic.rows("select id, pg_typeof(id)::text as kind from clinical.api_rate_limits")
    assert {row.kind for row in rows} == {"uuid"}
    assert len({row.id for row in rows}) == 4
    for good, kept in (("0.01", "0.01"), ("1", "1.00"), ("0.755", "0.76")):
        change(clinic, f"backpressure_threshold = {good}")
        assert str(clinic.limit().backpressure_threshold) == kept
    for bad in ("0", "-0.5", "1.01"):
        with pytest.raises(psycopg.Error):
            change(clinic, f"backpressure_threshold = {bad}")


def test_cp_68_an_error_is_not_want_of_capacity(clinic: Clinic) -> None:
    """CP-68: no capacity is an answer with a reason; what is wrong is raised, and shows nothing."""
    change(clinic, "concurrent_requests = 0")
    found = clinic.acquire()
    assert (found.granted, found.permit_id, found.reason) == (False, None, "concurrency")
    for name, tokens in (("openai/unheard-of", 1), ("openai/gpt-4o-mini", -1)):
        with pytest.raises(psycopg.Error) as caught:
            clinic.acquire(tokens, name)
        assert str(caught.value.sqlstate)[:2] in {"CP", "TL"}
    assert clinic.limit().rate_limit_violations == 1


def test_cp_51_a_pair_is_unique(clinic: Clinic) -> None:
    """CP-51: one row for a provider and an endpoint."""
    with pytest.raises(psycopg.errors.UniqueViolation):
        clinic.operator.connection.execute(
            "insert into clinical.api_rate_limits (provider_name, api_endpoint)"
            " values ('openai', 'gpt-4o-mini')"
        )
    assert clinic.limit().requests_per_minute == 500


@pytest.mark.parametrize(
    "bad",
    [
        "requests_per_minute = -1",
        "requests_per_minute = null",
        "tokens_per_hour = -5",
        "status = 'closed'",
        "backpressure_threshold = 0",
        "backpressure_threshold = 1.01",
        "backpressure_threshold = 0.001",
        "concurrent_requests = -1",
        "queue_depth_limit = -1",
        "provider_name = 'other'",
    ],
)
def test_cp_100_what_makes_no_sense_is_refused_when_written(clinic: Clinic, bad: str) -> None:
    """CP-100, CP-51, CP-105: negative limits, unknown statuses, thresholds of three decimals."""
    before = clinic.limit()
    with pytest.raises(psycopg.Error):
        change(clinic, bad)
    assert clinic.limit()[:12] == before[:12]
    change(clinic, "backpressure_threshold = 0.755")
    assert str(clinic.limit().backpressure_threshold) == "0.76"


def test_cp_51_an_endpoint_is_disabled_not_deleted(clinic: Clinic) -> None:
    """CP-51: jobs may name it."""
    with pytest.raises(psycopg.Error, match="disabled"):
        clinic.operator.connection.execute("delete from clinical.api_rate_limits")
    assert clinic.operator.value("select count(*) from clinical.api_rate_limits") == 4


def test_cp_53_seed_rows(clinic: Clinic, database: Database) -> None:
    """CP-53: four, all active; another installation brings back none of what was changed."""
    seeds = {
        "openai/gpt-4o-mini": (500, 200_000, 50, "active"),
        "openai/gpt-4-vision": (100, 20_000, 20, "active"),
        "google/vision-api": (1800, None, 100, "active"),
        "anthropic/claude-3": (400, 100_000, 25, "active"),
    }

    def facts(name: str) -> tuple[Any, ...]:
        row = clinic.limit(name)
        values = row.requests_per_minute, row.tokens_per_minute, row.concurrent_requests
        return (*values, row.status)

    assert {name: facts(name) for name in seeds} == seeds
    change(clinic, "requests_per_minute = 7, tokens_per_minute = null, status = 'maintenance'")
    clinic.configure("queue.max_deferrals", "5")
    installer.install(database.dsn, profiles.get("clinical"), ["1", "2"], again=True)
    assert facts("openai/gpt-4o-mini") == (7, None, 50, "maintenance")
    assert clinic.operator.value("select clinical.configured('queue.max_deferrals')") == "5"


def test_cp_53_a_limit_that_was_there_first_is_kept(database: Database, install: Any) -> None:
    """CP-53: also one that an operator made before the profile was installed."""
    operator = database.connect("trunkline_operator")
    operator.execute("select trunkline.set_limit('openai/gpt-4o-mini', '{\"concurrency\": 3}')")
    install()
    assert Clinic(database).limit().concurrent_requests == 3


def test_cp_54_a_permit_with_an_expiry(clinic: Clinic) -> None:
    """CP-54: granted, counted at once, and it says when it ends."""
    given = clinic.acquire(1500)
    assert given.granted
    assert given.permit_id is not None
    left = given.expires_at - clinic.operator.clock()
    assert timedelta(seconds=290) < left <= timedelta(seconds=300)
    row = clinic.limit()
    assert (row.current_requests_minute, row.current_requests_hour) == (1, 1)
    assert (row.current_tokens_minute, row.current_tokens_hour) == (1500, 1500)
    assert row.active_requests == 1


@pytest.mark.parametrize(
    ("limit", "tokens", "grants"),
    [
        ("requests_per_minute = 3", 0, 3),
        ("requests_per_hour = 2", 0, 2),
        ("tokens_per_minute = 2500", 1000, 2),
        ("tokens_per_hour = 3000", 1000, 3),
        ("concurrent_requests = 1", 1000, 1),
        ("requests_per_minute = 0", 0, 0),
    ],
)
def test_cp_54_every_part_of_a_limit_counts(
    clinic: Clinic, limit: str, tokens: int, grants: int
) -> None:
    """CP-54, CP-100: minute and hour, requests and tokens, and how many at once."""
    change(clinic, limit)
    answers = [clinic.acquire(tokens) for _ in range(grants + 1)]
    assert [one.granted for one in answers] == [True] * grants + [False]
    part = limit.split(" ", maxsplit=1)[0].replace("concurrent_requests", "concurrency")
    assert answers[-1].reason == part


def test_cp_54_null_is_unlimited(clinic: Clinic) -> None:
    """CP-54: not some large number."""
    change(clinic, "tokens_per_minute = null, concurrent_requests = null")
    assert all(clinic.acquire(900_000).granted for _ in range(3))
    assert clinic.limit().current_tokens_minute == 2_700_000


@pytest.mark.parametrize(
    ("limit", "window"),
    [("requests_per_minute", "62 seconds"), ("requests_per_hour", "61 minutes")],
)
def test_cp_55_a_window_rolls_over(clinic: Clinic, limit: str, window: str) -> None:
    """CP-55: what is older than the window counts no more, without anybody's doing."""
    change(clinic, f"{limit} = 1")
    assert clinic.acquire(0).granted
    assert not clinic.acquire(0).granted
    clinic.pass_time(window)
    assert clinic.acquire(0).granted


def test_cp_56_a_refusal_changes_no_counter(clinic: Clinic) -> None:
    """CP-56: but it is counted, with its time."""
    change(clinic, "concurrent_requests = 1")
    clinic.acquire()
    before = clinic.limit()
    for _ in range(3):
        assert not clinic.acquire().granted
    row = clinic.limit()
    used = ("requests_minute", "requests_hour", "tokens_minute", "tokens_hour")
    names = [f"current_{name}" for name in used]
    assert [getattr(row, n) for n in names] == [getattr(before, n) for n in names]
    assert row.active_requests == 1
    assert row.rate_limit_violations == before.rate_limit_violations + 3
    assert row.last_rate_limit_hit is not None
    assert clinic.metric("refusals", "openai/gpt-4o-mini").value == 3


def test_cp_57_an_unknown_pair_is_named(clinic: Clinic) -> None:
    """CP-57, CP-68: an error with both names, which is not the same as no capacity."""
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP008") as caught:
        clinic.acquire(name="acme/model-x")
    assert "acme" in str(caught.value)
    assert "model-x" in str(caught.value)


@pytest.mark.parametrize("status", ["maintenance", "disabled"])
def test_cp_57_a_closed_endpoint_is_no_error(clinic: Clinic, status: str) -> None:
    """CP-57, CP-58: not granted, with the reason; what was granted before is released."""
    given = clinic.acquire()
    change(clinic, f"status = '{status}'")
    answer = clinic.acquire()
    assert (answer.granted, answer.permit_id, answer.reason) == (False, None, status)
    assert clinic.release(given.permit_id, 400)
    row = clinic.limit()
    assert (row.active_requests, row.current_tokens_minute) == (0, 400)


@pytest.mark.parametrize(("actual", "total"), [(1500, 1500), (400, 400), (0, 0), (None, 1000)])
def test_cp_58_a_release_corrects_the_tokens(
    clinic: Clinic, actual: int | None, total: int
) -> None:
    """CP-58, CP-S08, CP-60, CP-101: by the difference; unknown keeps the estimate, zero is zero."""
    given = clinic.acquire(1000)
    assert clinic.release(given.permit_id, actual)
    row = clinic.limit()
    assert (row.current_tokens_minute, row.current_tokens_hour) == (total, total)
    assert (row.active_requests, row.current_requests_minute) == (0, 1)


def test_cp_58_a_second_release_changes_nothing(clinic: Clinic) -> None:
    """CP-58: the slot of another call stays taken."""
    mine, other = clinic.acquire(), clinic.acquire()
    assert clinic.release(mine.permit_id, 1500)
    assert not clinic.release(mine.permit_id, 9000)
    row = clinic.limit()
    assert (row.active_requests, row.current_tokens_minute) == (1, 2500)
    assert clinic.release(other.permit_id, None)
    assert clinic.limit().active_requests == 0


def test_cp_58_a_release_of_nothing_warns(clinic: Clinic) -> None:
    """CP-58: an unknown pair, or no permit: a warning, and nothing changes."""
    clinic.acquire()
    warnings: list[str] = []
    clinic.worker.connection.add_notice_handler(lambda n: warnings.append(n.message_primary or ""))
    assert not clinic.worker.value("select clinical.release_api_capacity('acme', 'x')")
    assert not clinic.release(None, 5)
    assert "acme" in warnings[0]
    assert "permit" in warnings[1]
    assert clinic.limit().active_requests == 1


def test_cp_58_a_permit_is_released_only_under_a_known_pair(clinic: Clinic) -> None:
    """CP-58: a valid permit with an unknown pair: a warning that names it, and nothing changes."""
    given = clinic.acquire(1000)
    warnings: list[str] = []
    clinic.worker.connection.add_notice_handler(lambda n: warnings.append(n.message_primary or ""))
    for provider, endpoint in (("openai", "model-x"), ("acme", "gpt-4o-mini")):
        assert not clinic.worker.value(
            "select clinical.release_api_capacity(%s, %s, 1000, 400, %s)",
            *(provider, endpoint, given.permit_id),
        )
        assert provider in warnings[-1]
        assert endpoint in warnings[-1]
    row = clinic.limit()
    assert (row.active_requests, row.current_tokens_minute) == (1, 1000)
    assert clinic.release(given.permit_id, 400)
    assert len(warnings) == 2
    row = clinic.limit()
    assert (row.active_requests, row.current_tokens_minute) == (0, 400)


def test_cp_s08_a_late_release_leaves_the_new_window_alone(clinic: Clinic) -> None:
    """CP-S08, CP-58: the correction belongs to the window of the estimate."""
    change(clinic, "tokens_per_hour = 100000")
    given = clinic.acquire(1000)
    clinic.pass_time("70 seconds")
    fresh = clinic.acquire(200)
    assert clinic.release(given.permit_id, 5000)
    row = clinic.limit()
    assert row.current_tokens_minute == 200
    assert row.current_tokens_hour == 5200
    assert clinic.release(fresh.permit_id, None)


def test_cp_59_an_unsettled_permit_comes_back(clinic: Clinic) -> None:
    """CP-59: by itself at its expiry, without an operator."""
    change(clinic, "concurrent_requests = 1")
    clinic.acquire()
    clinic.pass_time("280 seconds")
    assert not clinic.acquire().granted
    clinic.pass_time("21 seconds")
    assert clinic.acquire().granted


def test_cp_59_a_permit_of_an_attempt_ends_with_it(clinic: Clinic) -> None:
    """CP-59, CP-67: however the attempt ends; and the claim's own capacity is not taken twice."""
    change(clinic, "concurrent_requests = 5")
    job = clinic.start(AI)
    assert clinic.limit().active_requests == 1
    (own,) = clinic.rows(
        "select * from clinical.acquire_api_capacity('openai', 'gpt-4o-mini', 1000, %s, 1)",
        job,
        calls=clinic.worker,
    )
    assert own.granted
    assert clinic.limit().current_requests_minute == 1
    assert clinic.fail(job)
    assert clinic.limit().active_requests == 0


@pytest.mark.parametrize(("error", "charged"), [({"tokens_used": 300}, 300), ({}, 1000)])
def test_cp_60_a_failure_refunds_no_more_than_is_known(
    clinic: Clinic, error: dict[str, Any], charged: int
) -> None:
    """CP-60: tokens really used if they are known, otherwise the estimate stays."""
    job = clinic.start(AI)
    assert clinic.limit().current_tokens_minute == 1000
    assert clinic.fail(job, error={"type": "Timeout", **error})
    assert clinic.limit().current_tokens_minute == charged


@pytest.mark.parametrize(
    ("result", "charged"), [({"tokens_used": 2500}, 2500), ({"tokens_used": 0}, 0), ({}, 1000)]
)
def test_cp_101_a_result_settles_its_tokens(
    clinic: Clinic, result: dict[str, Any], charged: int
) -> None:
    """CP-101, CP-09: tokens_used of the result is the actual cost, and stays in job_result."""
    job = clinic.start(AI)
    assert clinic.complete(job, result=result)
    assert clinic.limit().current_tokens_minute == charged
    assert clinic.row(job).job_result == result


def test_cp_61_a_hundred_at_once(clinic: Clinic, database: Database) -> None:
    """CP-61: 100 parallel acquires against 20 slots grant exactly 20."""
    change(clinic, "concurrent_requests = 20")
    query = "select granted from clinical.acquire_api_capacity('openai', 'gpt-4o-mini')"
    with ExitStack() as open_ones:
        hands = [open_ones.enter_context(database.connect("trunkline_worker")) for _ in range(100)]

        def ask(number: int) -> tuple[Any, ...] | None:
            return hands[number].execute(query).fetchone()

        # Each on a connection of its own, when all are ready.
        granted = Counter(together([partial(ask, number) for number in range(len(hands))]))
    assert granted == {(True,): 20, (False,): 80}
    assert clinic.limit().active_requests == 20


@pytest.mark.parametrize("bad", [-5, -1])
def test_a_negative_estimate_lowers_no_counter(clinic: Clinic, bad: int) -> None:
    """CP-54: it is refused."""
    with pytest.raises(psycopg.Error):
        clinic.acquire(bad)
    assert clinic.limit().current_tokens_minute == 0
