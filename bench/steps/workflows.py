"""Jobs of ten steps per second: ours, and workflows of DBOS on the same server."""

import statistics

from bench.figures import Figure
from bench.rivals import dbos
from bench.sizes import Sizes
from bench.steps.runs import run_dbos, run_ours
from bench.steps.scene import Scene

__all__ = ["run"]

_STEPS = 10
# Of ours. The rival's queue starts up to 1,000 at once, all that it has.
_HANDLERS = 200
_GOAL = 5.0


def run(scene: Scene, sizes: Sizes) -> list[Figure]:
    """Measure, in turns; goal: at least 5 times the rate of DBOS."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(sizes.steps.repetitions):
        jobs = sizes.steps.jobs
        ours.append(jobs / run_ours(scene.place, jobs, _STEPS, _HANDLERS))
        if scene.rivals:
            workflows = sizes.steps.rival_workflows
            theirs.append(
                workflows / run_dbos(scene.place, dbos.ENVIRONMENT.python, workflows, _STEPS)
            )
    figures = [
        Figure("ten_step_jobs_per_second", statistics.median(ours), "jobs of ten steps", "/s")
    ]
    if theirs:
        ratio = statistics.median(ours) / statistics.median(theirs)
        figures += [
            Figure(
                "dbos_ten_step_workflows_per_second",
                statistics.median(theirs),
                "DBOS: workflows of ten steps",
                "/s",
            ),
            Figure("ten_steps_against_dbos", ratio, "Trunkline / DBOS", goal=_GOAL),
        ]
    return figures
