"""The pipeline end to end on real workers: a scanned page becomes clinical records."""

from tests.profiles.clinical.flow.conftest import Scene

STAGES = (
    *("fast_queue_security", "fast_queue_ocr", "fast_queue_spatial"),
    *("ai_queue_pass1", "ai_queue_pass2", "ai_queue_pass3"),
)


def test_cp_09_a_scanned_page_becomes_clinical_data(scene: Scene) -> None:
    """CP-09, CP-106, CP-101: what is printed on the page is what is on record."""
    scene.work()
    made = scene.upload()
    scene.finished(made.file_id)
    jobs = scene.jobs(made.file_id)
    assert tuple(job.job_type for job in jobs) == STAGES
    assert {job.status for job in jobs} == {"completed"}
    found = scene.records(made.file_id)
    assert found.keys() == {"screening", "pages", "layout", "entities", "facts", "narrative"}
    facts = {fact["name"]: (fact["value"], fact["unit"]) for fact in found["facts"]["facts"]}
    assert facts["Haemoglobin"] == ("13.1", "g/dL")
    assert facts["Date"] == ("2026-02-02", None)
    assert "Metformin 500 mg" in found["narrative"]["summary"]
    account = scene.provider.account()
    assert (account.calls, account.refused) == (3, 0)
    used = [job.job_result["tokens_used"] for job in jobs if job.job_type in STAGES[3:]]
    assert sum(used) == account.tokens
    limit = scene.clinic.limit()
    assert (limit.current_requests_minute, limit.current_tokens_minute) == (3, account.tokens)
    assert limit.active_requests == 0
