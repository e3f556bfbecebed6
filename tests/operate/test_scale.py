"""How many workers are wanted: limits, sets of tasks, hysteresis and the log of decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.operate.conftest import Scene, dsn_as
from trunkline.operate import WorkerTarget

KEDA = Path(__file__).resolve().parents[2] / "deploy" / "keda" / "scaledobject.yaml"


def targets(scene: Scene) -> dict[tuple[str, ...], WorkerTarget]:
    return {tuple(row.tasks or ("*",)): row for row in scene.operator.workers.wanted()}


def wanted(scene: Scene) -> dict[tuple[str, ...], int]:
    return {tasks: row.wanted for tasks, row in targets(scene).items()}


def decide(scene: Scene) -> None:
    scene.operator.duties.run("decide_workers")


def decisions(scene: Scene) -> list[tuple[Any, Any]]:
    rows = scene.calls.connection.execute(
        "select before ->> 'wanted', after ->> 'wanted' from trunkline.operator_log"
        " where action = 'scale' order by log_id"
    ).fetchall()
    return [(before and int(before), after and int(after)) for before, after in rows]


def register(scene: Scene, worker: str, *tasks: str) -> None:
    scene.calls.connection.execute(
        "select trunkline.register_worker(%s, '{default}', %s, p_pulse_interval => '1 hour')",
        (worker, list(tasks) or None),
    )


def drop_jobs(scene: Scene, left: int) -> None:
    ids = scene.calls.connection.execute(
        "select job_id from trunkline.jobs where state = 'ready' offset %s", (left,)
    ).fetchall()
    for (job,) in ids:
        scene.calls.connection.execute("select trunkline.cancel(%s)", (job,))


def limit(scene: Scene, task: str, **parts: Any) -> None:
    scene.operator.limits.set("api", parts)
    scene.calls.register(task, limits=["api"])


def test_ta_s11_ta_63_a_backlog_asks_for_five_workers_once_and_scales_down_after_ten_minutes(
    scene: Scene,
) -> None:
    register(scene, "w1", "work")
    decide(scene)
    assert wanted(scene) == {("work",): 1}
    scene.calls.fill(100)
    assert wanted(scene) == {("work",): 1}, "100 are not more than 100"
    scene.calls.fill(50)
    assert wanted(scene) == {("work",): 5}
    for _ in range(3):
        decide(scene)
    assert decisions(scene) == [(None, 1), (1, 5)]
    drop_jobs(scene, 10)
    decide(scene)
    scene.database.move_time("9 minutes")
    decide(scene)
    assert wanted(scene) == {("work",): 5}
    assert decisions(scene) == [(None, 1), (1, 5)]
    scene.database.move_time("1 minute")
    assert wanted(scene) == {("work",): 1}
    decide(scene)
    decide(scene)
    assert decisions(scene) == [(None, 1), (1, 5), (5, 1)]


def test_ta_63_a_backlog_that_recovers_in_between_starts_the_ten_minutes_again(
    scene: Scene,
) -> None:
    register(scene, "w1", "work")
    scene.calls.fill(150)
    decide(scene)
    drop_jobs(scene, 10)
    decide(scene)
    scene.database.move_time("9 minutes")
    scene.calls.fill(10)
    decide(scene)
    assert targets(scene)["work",].low_since is None, "20 are not fewer than 20"
    drop_jobs(scene, 10)
    decide(scene)
    scene.database.move_time("9 minutes")
    decide(scene)
    assert wanted(scene) == {("work",): 5}
    scene.database.move_time("1 minute")
    assert wanted(scene) == {("work",): 1}


def test_ta_63_the_maximum_is_a_setting(scene: Scene) -> None:
    register(scene, "w1")
    scene.calls.fill(1000)
    scene.calls.fill(501)
    assert wanted(scene) == {("*",): 10}
    scene.operator.settings.set("scale_max_workers", "20")
    assert wanted(scene) == {("*",): 16}, "one for each hundred jobs"
    decide(scene)
    scene.operator.settings.set("scale_max_workers", "3")
    assert wanted(scene) == {("*",): 3}, "at once"


def test_jobs_without_room_under_their_limit_want_no_worker(scene: Scene) -> None:
    scene.operator.settings.set("scale_min_workers", "0")
    limit(scene, "call", concurrency=3)
    scene.calls.fill(500, task="call")
    row = targets(scene)["call",]
    assert (row.startable, row.wanted) == (3, 1)
    assert len(scene.calls.claim("w", 10, tasks=["call"]).rows) == 3
    row = targets(scene)["call",]
    assert (row.startable, row.running, row.wanted) == (0, 3, 1), "one for what runs"
    scene.operator.limits.pause("api")
    assert targets(scene)["call",].startable == 0


def test_a_job_needs_room_in_each_of_its_limits(scene: Scene) -> None:
    scene.operator.limits.set("wide", {"concurrency": 1000})
    scene.operator.limits.set("narrow", {"concurrency": 2})
    scene.calls.register("both", limits=["wide", "narrow"])
    scene.calls.fill(200, task="both")
    assert targets(scene)["both",].startable == 2


def test_amounts_of_a_limit_bound_the_jobs_that_can_start(scene: Scene) -> None:
    limit(scene, "call", tokens_per_minute=100)
    scene.calls.fill(200, task="call", cost={"tokens": 30})
    assert targets(scene)["call",].startable == 3


def test_a_paused_queue_wants_no_worker_for_its_jobs(scene: Scene) -> None:
    scene.operator.settings.set("scale_min_workers", "0")
    scene.calls.fill(200)
    assert wanted(scene) == {("work",): 5}
    scene.operator.queues.pause("default")
    assert wanted(scene) == {}
    scene.operator.queues.resume("default")
    scene.operator.settings.set("claims_enabled", "false")
    assert wanted(scene) == {}


def test_due_jobs_count_before_a_worker_promotes_them(scene: Scene) -> None:
    scene.calls.enqueue("work", delay="1 hour")
    assert wanted(scene) == {}
    scene.database.move_time("2 hours")
    assert wanted(scene) == {("work",): 1}


def test_a_task_counts_for_the_smallest_set_with_a_worker(scene: Scene) -> None:
    scene.calls.register("pdf")
    scene.calls.register("lost")
    register(scene, "w1", "work", "pdf")
    register(scene, "w2", "pdf")
    register(scene, "w3", "pdf")
    scene.calls.fill(7)
    scene.calls.fill(200, task="pdf")
    scene.calls.fill(3, task="lost")
    rows = targets(scene)
    assert {tasks: (row.workers, row.startable, row.wanted) for tasks, row in rows.items()} == {
        ("pdf",): (2, 200, 5),
        ("pdf", "work"): (1, 7, 1),
        ("lost",): (0, 3, 1),
    }


def test_workers_that_register_take_over_the_target_of_their_tasks(scene: Scene) -> None:
    scene.calls.fill(150)
    decide(scene)
    register(scene, "w1", "pdf", "work")
    drop_jobs(scene, 30)
    assert wanted(scene) == {("pdf", "work"): 5, ("work",): 5}
    drop_jobs(scene, 0)
    decide(scene)
    scene.database.move_time("10 minutes")
    decide(scene)
    assert wanted(scene) == {("pdf", "work"): 1}, "nobody serves the other set any more"


def test_a_tenant_sees_no_targets(scene: Scene) -> None:
    scene.calls.fill(150)
    assert scene.operator.acting(tenant="a").workers.wanted() == []


def buffers(scene: Scene) -> int:
    """Return how many buffers the view reads, once its plans are made."""
    connection = scene.calls.connection
    connection.execute("analyze")
    query = "explain (analyze, buffers, format json) select * from trunkline.wanted_workers"
    connection.execute(query)
    row = connection.execute(query).fetchone()
    assert row is not None
    total = row[0][0]["Plan"]
    return int(total["Shared Hit Blocks"] + total["Shared Read Blocks"])


def test_the_cost_does_not_grow_with_the_backlog(scene: Scene) -> None:
    scene.operator.limits.set("one", {"concurrency": 3})
    scene.calls.register("narrow", limits=["one"])

    def add(thousands: int) -> None:
        for task in ("work", "narrow"):
            for _ in range(thousands):
                scene.calls.fill(1000, task=task)

    add(12)
    before = buffers(scene)
    add(24)
    assert buffers(scene) < 1.2 * before
    rows = targets(scene)
    assert (rows["work",].startable, rows["narrow",].startable) == (10_000, 3)


def keda_query() -> str:
    yaml = pytest.importorskip("yaml")
    documents = list(yaml.safe_load_all(KEDA.read_text(encoding="utf-8")))
    [scaled] = [document for document in documents if document["kind"] == "ScaledObject"]
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["type"] == "postgresql"
    assert float(trigger["metadata"]["targetQueryValue"]) == 1
    query = trigger["metadata"]["query"]
    assert isinstance(query, str)
    return query


@pytest.mark.parametrize(("jobs", "result"), [(0, 0), (1, 1), (150, 5)])
def test_the_query_of_the_keda_manifest_returns_one_number(
    scene: Scene, jobs: int, result: int
) -> None:
    scene.calls.register("send")
    if jobs:
        scene.calls.fill(jobs, task="send")
    scene.calls.fill(300)
    with psycopg.connect(dsn_as(scene.database, "reader"), autocommit=True) as reader:
        assert reader.execute(keda_query().encode()).fetchall() == [(result,)]
