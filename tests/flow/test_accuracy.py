"""What a provider sees: never more than it allows, and nearly all of it while work waits.

Real worker processes against a real HTTP server that counts, for the minute; the engine's functions
against the same account by the engine's own clock, for hours.
"""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from bench.flow.fire import Fire, judge, open_fire
from bench.flow.limits_accuracy import LIMITS, work
from tests.flow.conftest import Desk
from tests.support import databases, servers
from tests.support.databases import Database
from tests.support.servers import Server
from tests.support.waiting import together
from trunkline_profiles.clinical.stubs.limits import Window
from trunkline_profiles.clinical.stubs.provider import model_from

# As promised: of a minute's and of an hour's capacity, while work waits.
MINUTE, HOUR = 0.93, 0.95
HOURS = 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["settled", "killed"])
def test_eight_workers_stay_within_every_part_of_a_limit_and_use_it(
    database: Database, tmp_path: Path, kind: str
) -> None:
    """Minute, hour, tokens and calls at once; also while workers are killed."""
    if database.server.major != servers.majors()[-1]:
        pytest.skip("a minute of real time, once is enough")
    # The second minute brings the hour's end.
    if kind == "settled":
        # Tokens bind, and half as much again is asked for: unless what is settled comes back at
        # once, two thirds of the minute are used.
        limits = {**LIMITS, "tokens_per_minute": 80_000, "requests_per_hour": 300}
        fire = Fire(limits, work(limits), seconds=75, processes=8, estimate=1.5)
    else:
        limits = {**LIMITS, "requests_per_hour": 450}
        fire = Fire(limits, work(limits), seconds=75, processes=8, kill_every=3.0)
    found = open_fire(database.superuser_dsn, fire, tmp_path / "workers.log")
    assert found.over == {}, found
    assert found.waiting > 0, "there was always work"
    assert found.most_at_once <= limits["concurrency"]
    assert found.minute_used >= MINUTE, found
    assert found.hour_used >= HOUR, found
    assert found.kills >= (15 if kind == "killed" else 0)


@pytest.fixture
def clocked(server: Server, template: str) -> Iterator[Desk]:
    """A database whose clock stands still until it is set."""
    with databases.fresh(server, template) as database:
        database.move_time("0")
        desk = Desk(database)
        desk.behind.execute(
            "create table trunkline_test.still (at timestamptz);"
            " insert into trunkline_test.still values ('2026-01-01T00:00:00Z');"
            " grant select on trunkline_test.still to public;"
            " create or replace function trunkline.clock() returns timestamptz language sql"
            " volatile as 'select at from trunkline_test.still'"
        )
        desk.behind.execute("select trunkline.maintain_partitions()")
        yield desk


def set_clock(desk: Desk, seconds: float) -> None:
    desk.behind.execute(
        "update trunkline_test.still"
        " set at = '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => %s)",
        (seconds,),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [
        {"requests_per_minute": 40, "requests_per_hour": 800, "concurrency": 50},
        {"tokens_per_minute": 9_000, "tokens_per_hour": 150_000, "concurrency": 50},
    ],
    ids=["requests", "tokens"],
)
def test_no_hour_is_over_and_nearly_all_of_it_is_used(
    clocked: Desk, limits: dict[str, int]
) -> None:
    """By the engine's clock; a job calls within the second that it is given to start in."""
    desk, draw = clocked, random.Random(7)
    moment = [0.0]
    account = Window(replace(model_from(limits), enforced=False), lambda: moment[0])
    desk.limit("api", **limits).task("api")
    cost: dict[Any, int] = {}
    now = 0.0
    arriving: list[tuple[float, int]] = []
    while now < HOURS * 3600:
        set_clock(desk, now)
        if len(cost) < 200:
            tokens = [draw.randint(50, 400) for _ in range(400)]
            rows = desk.producer.enqueue_many(
                [{"task": "work", "cost": {"tokens": size}} for size in tokens]
            )
            cost |= {row.job_id: size for row, size in zip(rows, tokens, strict=True)}
        attempts = desk.claim(100)
        arriving += [(now + draw.random() * 0.999, cost.pop(each.job)) for each in attempts]
        if attempts:
            desk.end(attempts)
        # Nothing else happens before the limit opens; sometimes somebody asks too early.
        now += draw.choice([0.2, 1.0, 3.0]) if attempts else draw.choice([1.0, 5.0, 12.0])
    for at, tokens_used in sorted(arriving):
        moment[0] = at
        account.end(account.arrive(tokens_used).call)
    found = account.account()
    assert found.over == {}
    assert judge(account.calls(), limits)[1] / HOURS >= HOUR


def test_a_hundred_asking_at_once_for_twenty_places_get_exactly_twenty(desk: Desk) -> None:
    """CP-61: on a hundred connections that wait for each other and then ask."""
    desk.limit("api", concurrency=20)
    with ExitStack() as open_ones:
        hands = [
            open_ones.enter_context(desk.database.connect("trunkline_worker")) for _ in range(100)
        ]

        def ask(number: int) -> Any:
            query = "select granted, reason from trunkline.acquire('api', %s)"
            return hands[number].execute(query, (Jsonb({}),)).fetchone()

        found = Counter(together([partial(ask, number) for number in range(len(hands))]))
    assert found == {(True, None): 20, (False, "concurrency"): 80}
