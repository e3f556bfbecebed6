"""A worker that is killed at any point of a job with steps loses no recorded step."""

from pathlib import Path

import pytest

from tests.chaos.scene import Scene
from tests.support.worker_process import WorkerProcess

_POINTS = [f"{when} {step}" for step in (1, 2, 3) for when in ("before", "inside", "after")]
_TABLES = """
create table step_runs (step integer, attempt integer);
create table step_effects (step integer primary key);
grant all on step_runs, step_effects to public;
"""


@pytest.mark.parametrize(
    ("kind", "point"),
    [*(("loop", point) for point in _POINTS), ("thread", "inside 2"), ("process", "inside 2")],
)
def test_a_worker_killed_at_any_point_repeats_no_recorded_step(
    scene: Scene, tmp_path: Path, kind: str, point: str
) -> None:
    superuser = scene.database.superuser()
    superuser.execute(_TABLES)
    variables = {"TRUNKLINE_DSN": scene.database.dsn, "STEP_KILL": point, "STEP_KIND": kind}
    workers: list[WorkerProcess] = []

    def start() -> WorkerProcess:
        log = tmp_path / f"{len(workers)}.log"
        workers.append(WorkerProcess("tests.chaos.step_app:app", environment=variables, log=log))
        return workers[-1]

    def ended() -> bool:
        state = superuser.execute("select state from trunkline.jobs").fetchone()
        return state is not None and state[0] in {"completed", "dead"}

    try:
        first = start()
        first.until_ready(superuser)
        superuser.execute("select trunkline.enqueue(%s)", (kind,))
        scene.until(lambda: first.process.poll() is not None, "the worker killed itself")
        start()
        scene.until(ended, "the job ended")
    finally:
        for worker in workers:
            worker.destroy()
    (job,) = superuser.execute("select job_id, state, attempt, failures from trunkline.jobs")
    assert job[1:] == ("completed", 2, 1)
    result = superuser.execute("select result from trunkline.job(%s)", job[:1]).fetchone()
    recorded = superuser.execute(
        "select name, result from trunkline.job_steps(%s) order by place", job[:1]
    ).fetchall()
    # Each step was recorded once, and the result has what was recorded.
    assert [name for name, _ in recorded] == ["step 1", "step 2", "step 3"]
    assert result == ([value for _, value in recorded],)
    # A step ran again only if it was killed between its effect and its record.
    runs = superuser.execute("select step, attempt from step_runs order by 1, 2").fetchall()
    assert runs == _expected(point)
    assert len(superuser.execute("select from step_effects").fetchall()) == 3


def _expected(point: str) -> list[tuple[int, int]]:
    when, _, number = point.partition(" ")
    runs = []
    for step in (1, 2, 3):
        if step < int(number) or (step == int(number) and when == "after"):
            runs.append((step, 1))
        elif step == int(number) and when == "inside":
            runs += [(step, 1), (step, 2)]
        else:
            runs.append((step, 2))
    return runs
