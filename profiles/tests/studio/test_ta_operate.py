"""What operators see: pools that are missing, metrics, and the order of claims under load."""

from typing import Any

from profiles.tests.studio.conftest import AUDIO, FINAL, PDF, TEXT, Studio


def test_a_type_without_a_pool_is_an_alert(studio: Studio) -> None:
    """TA-31: pending tasks, and nobody has asked for them for five minutes."""
    studio.order()
    studio.work(TEXT, count=1)
    assert studio.metric("pending", PDF) == (1, False)
    studio.pass_time("6 minutes")
    studio.claim(TEXT, AUDIO)
    assert studio.metric("pending", PDF) == (1, True)
    assert studio.metric("pending", TEXT).alert is False
    assert studio.claim(PDF, count=1)
    assert studio.metric("pending", PDF).alert is False


def test_a_live_worker_of_the_engine_counts_as_a_pool(studio: Studio) -> None:
    """TA-31: not only those that poll."""
    studio.order()
    studio.pass_time("6 minutes")
    assert studio.metric("pending", TEXT).alert is True
    studio.worker.value(
        "select trunkline.register_worker('w9', array['studio'], array['text_generation'], 'h', 1)"
    )
    assert studio.metric("pending", TEXT).alert is False


def test_the_metrics_count_what_happened(studio: Studio) -> None:
    """TA-65: tasks by type and status, attempts, reclaims, jobs and their durations, files."""
    studio.unlimited()
    job = studio.order()
    (lost,) = studio.claim(TEXT, count=1)
    studio.pass_time("181 seconds")
    studio.worker.value("select studio.reclaim_stale_tasks()")
    studio.pass_time("10 minutes")
    studio.finish()
    studio.work(FINAL)
    assert studio.job(job).status == "complete"
    found: dict[tuple[str, Any], Any] = {
        (row.metric, row.label): row for row in studio.rows("select * from studio.metrics")
    }
    assert found["reclaimed_last_hour", None].value == 1
    assert found["jobs", "complete"].value == 1
    assert found["attempts_mean", PDF].value == 1
    assert round(found["attempts_mean", TEXT].value, 2) == round(17 / 16, 2) or (
        found["attempts_mean", TEXT].value > 1
    )
    assert found["job_seconds_p50", None].value >= 781
    assert found["job_seconds_p95", None].value >= found["job_seconds_p50", None].value
    assert found["artifact_bytes", None].value == 49_000
    assert found["claimed", AUDIO].value == found["failed", AUDIO].value == 0
    assert found["tasks_last_minute", PDF].value == 16
    assert [row for row in found.values() if row.alert] == []
    assert lost is not None


def test_the_bytes_of_all_files_of_the_store_are_counted_until_they_are_deleted(
    studio: Studio,
) -> None:
    """TA-65: artifact bytes, also of other profiles, as for files to remove and orphans."""
    job = studio.order()
    studio.work(TEXT, count=3)
    other_file(studio)
    assert studio.metric("artifact_bytes").value == 3007
    assert studio.metric("files_to_remove").value == 0
    deleted = studio.artifacts(job)[0].id
    studio.operator.value("select trunkline.delete_artifact(%s)", deleted)
    assert studio.metric("artifact_bytes").value == 2007
    assert studio.metric("files_to_remove").value == 1
    studio.producer.value("select studio.delete_job(%s)", job)
    assert studio.metric("artifact_bytes").value == 7
    assert studio.metric("files_to_remove").value == 3


def other_file(studio: Studio) -> None:
    """A file of a job that is no task of the studio."""
    studio.producer.register("other")
    studio.producer.connection.execute("select trunkline.enqueue('other', p_queue => 'other')")
    (job,) = studio.rows("select * from trunkline.claim('w2', '{other}', 1)", calls=studio.worker)
    path = studio.worker.value(
        "select path from trunkline.begin_artifact('w2', %s, %s, 'x.pdf', 'pdf', 'x/y')",
        *(job.job_id, job.attempt),
    )
    studio.worker.value(
        "select trunkline.stage_artifact('w2', %s, %s, %s, 7, %s)",
        *(job.job_id, job.attempt, path, "0" * 64),
    )
    studio.worker.value(
        "select count(*) from trunkline.complete('w2', array[%s], array[%s])",
        *(job.job_id, job.attempt),
    )


def test_orphans_that_sweeps_found_are_reported(studio: Studio) -> None:
    """TA-52, TA-65: files without a row."""
    assert studio.metric("orphan_files").value == 0
    studio.worker.connection.execute("select trunkline.take_sweep('w1')")
    found = studio.worker.value(
        "select trunkline.report_files('w1', array['t-x/a/pdf/1.pdf', 't-x/a/pdf/2.pdf'], null)"
    )
    assert found == 2
    assert studio.metric("orphan_files").value == 2
