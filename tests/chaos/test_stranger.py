"""A login without any right of ours cannot stop the maintenance of others."""

import re

import psycopg
import pytest

from tests.chaos.scene import Scene
from tests.support.processes import REPOSITORY
from tests.support.stranger import advisory_locks, stranger
from tests.support.waiting import backend


def test_a_stranger_with_advisory_locks_does_not_stop_reclaim(scene: Scene) -> None:
    """Whatever a run of the duties locks in this database, a stranger may hold it before them."""
    caller = scene.database.connect("trunkline_worker", autocommit=False)
    caller.execute("select trunkline.run_duties()")
    seen = advisory_locks(scene.superuser, backend(caller))
    caller.rollback()
    with stranger(scene.database.superuser_dsn, seen):
        scene.expect_deaths()
        first = scene.start()
        [job] = scene.enqueue("gated", gate="mine")
        scene.until(lambda: len(scene.runs(job)) == 1, "the first attempt runs")
        first.destroy()
        scene.open("mine")
        # No duty is called here: the second worker's own have to bring the job back.
        scene.start()
        scene.until_all("completed")
        assert scene.job(job).attempt == 2
        assert scene.lost(job) == ["worker_gone"]
        late = "select array_agg(duty) from trunkline.duties where late"
        scene.until(lambda: scene.value(late) is None, "no duty is late")
    scene.require_balance()


def test_the_recipe_against_strangers_leaves_limits_at_work(scene: Scene) -> None:
    """The commands of SECURITY.md: no advisory lock for a stranger, all of them for the engine."""
    text = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
    [recipe] = re.findall(r"^```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    scene.superuser.execute(recipe.encode())
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege),
        stranger(scene.database.superuser_dsn),
    ):
        pass
    scene.superuser.execute("""select trunkline.set_limit('slow', '{"concurrency": 1}')""")
    worker = scene.database.connect("trunkline_worker")
    granted = worker.execute("select (trunkline.acquire('slow')).granted").fetchone()
    assert granted == (True,)
