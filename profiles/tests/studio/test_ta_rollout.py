"""The cut-over from the older in-process system, and the way back."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from profiles.tests.executor.test_cli import trunkline
from profiles.tests.studio.conftest import Studio, refused

TYPES = ["text_generation", "pdf_generation", "audio_generation", "finalize_job"]


def take(studio: Studio, plan: str, step: str, *, dry_run: bool = False) -> Any:
    (row,) = studio.rows("select * from studio.run_step(%s, %s, %s)", plan, step, dry_run)
    return row


def routing(studio: Studio) -> tuple[str, bool]:
    (row,) = studio.rows(
        "select (r.detail -> 'routing') as routing from studio.rollout_results as r"
        " order by r.result desc limit 1"
    )
    return row.routing["new_jobs"], row.routing["dual_read"]


@pytest.fixture
def legacy(studio: Studio) -> UUID:
    """A job that runs in the older system."""
    job = uuid4()
    studio.producer.connection.execute(
        "insert into studio.legacy_jobs values (%s, %s, 'nuclear_v2', 'processing', %s, %s, now())",
        (
            job,
            str(studio.user),
            Jsonb({"percent": 40}),
            Jsonb([{"type": "pdf", "url": "http://x"}]),
        ),
    )
    return job


@pytest.fixture
def pools(studio: Studio) -> None:
    """A live worker for every type."""
    studio.worker.value(
        "select trunkline.register_worker('w9', array['studio', 'studio-final'], %s, 'host', 1)",
        TYPES,
    )


def test_the_cut_over_and_the_way_back(studio: Studio, legacy: UUID, pools: None) -> None:
    """TA-66: dual read, new jobs to the queue, the older system drained, and back."""
    # Nothing of the older system is read before.
    assert studio.read(legacy) is None
    assert take(studio, "cutover", "new_to_queue").outcome == "refused"
    assert take(studio, "cutover", "dual_read", dry_run=True).outcome == "would_do"
    assert routing(studio) == ("queue", False)
    assert take(studio, "cutover", "dual_read").outcome == "done"
    assert routing(studio) == ("legacy", True)
    assert studio.read(legacy)["progress"] == {"percent": 40}
    with refused("TA010"):
        studio.order()
    assert take(studio, "cutover", "pools_ready").outcome == "done"
    assert take(studio, "cutover", "drained").outcome == "refused"
    assert take(studio, "cutover", "new_to_queue").outcome == "done"
    job = studio.order()
    refusal = take(studio, "cutover", "first_complete")
    assert (refusal.outcome, len(refusal.detail["problems"])) == ("refused", 1)
    studio.unlimited()
    studio.finish()
    studio.work("finalize_job")
    assert take(studio, "cutover", "first_complete").outcome == "done"
    refusal = take(studio, "cutover", "drained")
    assert refusal.detail["problems"] == ["1 jobs of the older system are live"]
    assert take(studio, "cutover", "single_read").outcome == "refused"
    studio.producer.connection.execute("update studio.legacy_jobs set status = 'complete'")
    assert take(studio, "cutover", "drained").outcome == "done"
    assert take(studio, "cutover", "single_read").outcome == "done"
    assert routing(studio) == ("queue", False)
    assert studio.read(legacy) is None
    assert studio.read(job)["status"] == "complete"
    # And back: jobs of both are read, new ones start in the older system.
    another = studio.order()
    assert take(studio, "rollback", "queue_drained").outcome == "refused"
    assert take(studio, "rollback", "new_to_legacy").outcome == "done"
    with refused("TA010"):
        studio.order()
    assert studio.read(legacy) is not None
    assert take(studio, "rollback", "queue_drained").outcome == "refused"
    studio.finish()
    studio.work("finalize_job")
    assert studio.read(another)["status"] == "complete"
    assert take(studio, "rollback", "queue_drained").outcome == "done"


def test_a_pool_that_is_missing_is_named(studio: Studio) -> None:
    """TA-31, TA-66: no worker serves PDFs."""
    studio.worker.value(
        "select trunkline.register_worker('w9', array['studio', 'studio-final'], %s, 'host', 1)",
        [kind for kind in TYPES if kind != "pdf_generation"],
    )
    result = take(studio, "cutover", "pools_ready")
    assert result.detail["problems"] == ["no worker serves pdf_generation"]


def test_jobs_of_the_older_system_are_their_user_s(studio: Studio, legacy: UUID) -> None:
    """TA-45, TA-66: dual read shows nobody else's job."""
    take(studio, "cutover", "dual_read")
    connection = studio.producer.connection
    for user, visible in ((studio.user, True), (uuid4(), False)):
        with connection.transaction():
            connection.execute("select set_config('trunkline.tenant', %s, true)", (str(user),))
            found = connection.execute("select studio.read_job(%s)", (legacy,)).fetchall()
        assert (found != [(None,)]) == visible


def test_the_command_lists_the_steps_with_their_results(studio: Studio, legacy: UUID) -> None:
    """TA-66: `trunkline profile steps studio`, and one step."""
    taken = trunkline(studio.database, "step", "studio", "cutover", "dual_read").stdout
    assert "cutover dual_read: done" in taken
    shown = trunkline(studio.database, "steps", "studio").stdout
    for step in ("dual_read", "new_to_queue", "drained", "single_read", "new_to_legacy"):
        assert step in shown
    assert "done" in shown
    with refused("TA009"):
        take(studio, "cutover", "celebrate")
