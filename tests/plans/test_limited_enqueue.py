"""Enqueue of limited jobs reads a few rows, however many wait and however many keys there are."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.plans.measuring import measure
from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import Server

PRODUCER, OPERATOR = "trunkline_producer", "trunkline_operator"
WAITING, KEYS = 20_000, 2_000

_SETTING = """
select
  trunkline.set_limit(
    'api', '{"tokens_per_minute": 1000, "backpressure_threshold": 0.5, "quota": 9000}'
  ),
  trunkline.set_limit('small', '{"concurrency": 1, "depth_limit": 100000}'),
  trunkline.set_limit('beside', '{"concurrency": 1, "depth_limit": 100000}'),
  trunkline.set_limit('key/{k}', '{"concurrency": 1, "depth_limit": 1000}'),
  trunkline.register_task('bulk', p_limits => '{api}'),
  trunkline.register_task('few', p_limits => '{small}'),
  trunkline.register_task('keyed', p_limits => '{"key/{k}"}'),
  trunkline.register_task('two', p_limits => '{small, beside}')
"""
_FILLING = """
select
  trunkline.enqueue_batch('bulk', (select jsonb_agg('{}'::jsonb) from generate_series(1, %s))),
  trunkline.enqueue_batch(
    'keyed', (select jsonb_agg(jsonb_build_object('k', n)) from generate_series(1, %s) as n)
  ),
  trunkline.enqueue_batch('few', '[{}, {}, {}]')
"""


@pytest.fixture(scope="module", params=["analysed", "never analysed", "analysed when empty"])
def limited(server: Server, template: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    with databases.fresh(server, template) as database:
        superuser = database.superuser()
        superuser.execute(_SETTING.encode())
        if request.param == "analysed when empty":
            superuser.execute("analyze")
        superuser.execute(_FILLING.encode(), (WAITING, KEYS))
        if request.param == "analysed":
            superuser.execute("analyze")
        yield database


@pytest.fixture
def behind(limited: Database) -> psycopg.Connection[Any]:
    return limited.superuser()


@pytest.mark.parametrize(
    ("call", "most_rows", "most_buffers"),
    [
        ("trunkline.enqueue('bulk')", 5, 200),
        ("trunkline.enqueue('few')", 5, 200),
        ("trunkline.enqueue('two')", 20, 300),
        ("""trunkline.enqueue('keyed', '{"k": 7}')""", 5, 200),
        ("trunkline.enqueue_batch('bulk', '[{}, {}]')", 5, 300),
        ("""trunkline.enqueue_batch('keyed', '[{"k": 7}, {"k": 8}]')""", 10, 400),
        ("""trunkline.enqueue_many('[{"task": "few"}, {"task": "bulk"}]')""", 10, 500),
    ],
)
def test_an_enqueue_reads_little(
    behind: psycopg.Connection[Any], call: str, most_rows: int, most_buffers: int
) -> None:
    work = measure(behind, PRODUCER, call)
    assert work.sequential == {}
    assert work.by_index.get("waiting", 0) <= most_rows, work
    assert work.by_index.get("bucket_names", 0) <= 10, work
    assert work.buffers <= most_buffers, work


def test_the_sweep_reads_only_the_heads_of_lanes(behind: psycopg.Connection[Any]) -> None:
    """Also after the limit of 20,000 jobs was lowered, as long as they fit."""
    behind.execute("""select trunkline.set_limit('api', '{"tokens_per_minute": 10}')""")
    work = measure(behind, OPERATOR, "trunkline.sweep_buckets()")
    assert work.sequential == {}
    # One look at each open bucket whether it is empty.
    assert work.by_index.get("waiting", 0) <= 2 * KEYS + 100, work
