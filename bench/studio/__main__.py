"""``python -m bench.studio``: measure pools of workers, print the planning table, end with JSON.

All pools share this machine with the server and the stub of the model, so the rates are lower than
on separate machines. The stub answers after 50 to 300 ms; a real model takes seconds, and text
workers then need as many more slots.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from psycopg.types.json import Jsonb

from bench.studio.planning import Measured, rows
from trunkline_profiles.studio import demo

# Per second in which the pool had work: while it waits for other pools, it could do more.
_RATES = """
select
  b.task,
  b.tasks / (
    select sum(extract(epoch from upper(r.busy) - lower(r.busy))) from unnest(b.busy) as r (busy)
  )
from (
  select j.task, count(*) as tasks, range_agg(tstzrange(j.claimed_at, j.finished_at)) as busy
  from trunkline.jobs as j
  where j.workflow_id = any (%(orders)s) and j.state = 'completed'
  group by j.task
) as b
"""
_SECONDS = """
select percentile_cont(0.5) within group (order by extract(epoch from w.ended_at - w.created_at))
from trunkline.workflows as w where w.workflow_id = any (%(orders)s) and w.state = 'completed'
"""


def main() -> int:
    """Run one order alone, then several at once."""
    parser = argparse.ArgumentParser(prog="python -m bench.studio", description=__doc__)
    parser.add_argument("--orders", type=int, default=6, help="orders at once, for the rates")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder, ExitStack() as stack:
        stage = demo.open_stage(Path(folder), stack)
        for pool in demo.POOLS:
            stage.start_worker(pool)
        _finish(stage, _order(stage, 1))
        alone = _finish(stage, _order(stage, 1))
        together = _finish(stage, _order(stage, options.orders))
        measured = Measured(
            rates={task: float(rate) for task, rate in _ask(stage, _RATES, together)},
            idle_seconds=float(_ask(stage, _SECONDS, alone)[0][0]),
            loaded_seconds=float(_ask(stage, _SECONDS, together)[0][0]),
            orders=options.orders,
        )
    for task, rate in sorted(measured.rates.items()):
        print(f"one worker of {task}: {rate:.2f} tasks a second")
    print("\n".join(rows(measured)))
    print(json.dumps(asdict(measured)))
    return 0


def _order(stage: demo.Stage, count: int) -> list[Any]:
    return [stage.ask("start", params=Jsonb(demo.PARAMS), user=uuid4())[0][0] for _ in range(count)]


def _finish(stage: demo.Stage, orders: list[Any]) -> list[Any]:
    while any(
        stage.ask("progress", job=order)[0][0] in {"queued", "processing"} for order in orders
    ):
        time.sleep(0.2)
    return orders


def _ask(stage: demo.Stage, query: str, orders: list[Any]) -> list[tuple[Any, ...]]:
    with stage.connect() as connection:
        return connection.execute(query.encode(), {"orders": orders}).fetchall()


if __name__ == "__main__":
    sys.exit(main())
