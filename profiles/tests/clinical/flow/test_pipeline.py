"""The pipeline end to end on real workers: a scanned page becomes clinical records."""

import json

import pytest

from profiles.tests.clinical.flow.conftest import KEY, Scene
from profiles.tests.clinical.flow.test_provider import Clock
from trunkline_profiles.clinical.stubs import answers
from trunkline_profiles.clinical.stubs.provider import Model, Provider
from trunkline_profiles.clinical.stubs.scans import report_lines, scan, typeset

STAGES = (
    *("fast_queue_security", "fast_queue_ocr", "fast_queue_spatial"),
    *("ai_queue_pass1", "ai_queue_pass2", "ai_queue_pass3"),
)
MODEL = "gpt-4o-mini"
ALIVE = typeset(report_lines(1)).replace(
    b"/Type /Catalog", b"/Type /Catalog /AA << /S /JavaScript >>"
)


def test_cp_09_a_scanned_page_becomes_clinical_data(scene: Scene) -> None:
    """CP-09, CP-08, CP-106, CP-101: what is printed on the page is what is on record."""
    made = scene.upload()
    # The upload is safe before anybody works.
    assert scene.jobs(made.file_id)[0].id == made.job_id
    scene.work()
    scene.finished(made.file_id)
    jobs = scene.jobs(made.file_id)
    assert tuple(job.job_type for job in jobs) == STAGES
    assert {job.status for job in jobs} == {"completed"}
    assert {job.patient_id for job in jobs} == {scene.clinic.patient}
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


def test_cp_72_every_record_is_audited_with_its_patient(scene: Scene) -> None:
    """CP-72, CP-71, CP-97: by the job that wrote it, in its transaction."""
    scene.work()
    made = scene.upload(typeset(report_lines(2)), name="report.pdf", kind="application/pdf")
    scene.finished(made.file_id)
    rows = scene.clinic.rows(
        "select r.id, r.job_id, r.xmin::text as written from clinical.clinical_records as r"
        " where r.shell_file_id = %s",
        made.file_id,
    )
    assert len(rows) == 6
    for row in rows:
        (event,) = scene.clinic.audit(row.id, "clinical_records")
        assert (event.action, event.patient_id) == ("INSERT", scene.clinic.patient)
        assert event.job_id == row.job_id
    events = scene.clinic.rows(
        "select * from clinical.audit_log where job_id = any (%s)", [row.job_id for row in rows]
    )
    assert {event.patient_id for event in events} == {scene.clinic.patient}


def test_cp_106_later_passes_are_optional(scene: Scene) -> None:
    """CP-106: by configuration; the third pass does not need the second."""
    scene.clinic.configure("pipeline.pass2_enabled", "false")
    scene.work()
    made = scene.upload()
    scene.finished(made.file_id)
    assert [job.job_type for job in scene.jobs(made.file_id)] == [
        stage for stage in STAGES if stage != "ai_queue_pass2"
    ]
    assert scene.records(made.file_id).keys() >= {"entities", "narrative"}
    assert scene.provider.account().calls == 2


def test_a_document_that_fails_the_check_goes_no_further(scene: Scene) -> None:
    """CP-09, CP-48, CP-01: dead at once, nobody else sees it, and the file says why."""
    scene.work()
    made = scene.upload(ALIVE, name="report.pdf", kind="application/pdf")
    scene.wait(lambda: scene.clinic.row(made.job_id).status == "failed", "the check failed")
    job, *later = scene.jobs(made.file_id)
    assert [row.status for row in later] == ["cancelled"] * 5
    assert (len(job.error_details["history"]), job.dead_letter_at is not None) == (1, True)
    assert "active_content" in json.dumps(job.error_details)
    assert scene.records(made.file_id) == {}
    assert scene.result(scene.chore("system_maintenance", limit=10)) == {"files": 1}
    assert "active_content" in json.dumps(scene.file(made.file_id).processing_error)
    assert scene.provider.account().calls == 0


def test_a_file_that_was_changed_after_the_check_is_not_read(scene: Scene) -> None:
    """CP-09: what was checked is what is processed."""
    made = scene.upload()
    # One that can check and cannot read.
    scene.work(PATH="/nowhere")
    scene.wait(lambda: scene.clinic.row(made.job_id).status == "completed", "the check passed")
    path = scene.file(made.file_id).storage_path
    scene.store.write(scene.clinic.patient, path, scan(report_lines(9)))
    scene.work()
    ocr = scene.jobs(made.file_id)[1]
    scene.wait(lambda: scene.clinic.row(ocr.id).status == "failed", "the OCR failed")
    assert "not the one that was checked" in json.dumps(scene.clinic.row(ocr.id).error_details)


def test_a_429_holds_the_limit_and_is_no_retry(scene: Scene) -> None:
    """CP-42, CP-60, CP-69: the job is put off until the provider wants calls again."""
    scene.provider.refuse(2, retry_after=1)
    scene.work()
    made = scene.upload()
    scene.finished(made.file_id)
    account = scene.provider.account()
    assert (account.served, account.refused, account.refused_on_demand) == (3, 2, 2)
    jobs = scene.jobs(made.file_id)
    assert {job.retry_count for job in jobs} == {0}
    assert max(job.deferrals for job in jobs) >= 1
    # A refused call counts as a request; that it took no tokens is known (CP-60).
    limit = scene.clinic.limit()
    assert limit.current_requests_minute == 5
    assert limit.current_tokens_minute == account.tokens


def test_cp_60_a_failed_call_stays_charged_and_is_tried_again(scene: Scene) -> None:
    """CP-60, CP-48, CP-69: whether the provider worked for it, nobody knows."""
    scene.provider.fail(1, status=502)
    scene.work()
    made = scene.upload()
    failed = scene.wait(
        lambda: [job for job in scene.jobs(made.file_id) if job.retry_count], "an attempt failed"
    )
    assert failed[0].job_type == "ai_queue_pass1"
    assert "502" in json.dumps(failed[0].error_details)
    assert scene.clinic.limit().current_tokens_minute == 1000
    scene.later("50 seconds")
    scene.finished(made.file_id)
    (job,) = (job for job in scene.jobs(made.file_id) if job.job_type == "ai_queue_pass1")
    assert (job.status, job.retry_count) == ("completed", 1)
    assert scene.clinic.limit().active_requests == 0


def test_cp_69_the_remaining_amount_of_the_provider_lowers_the_limit(scene: Scene) -> None:
    """CP-69, CP-73: two calls a minute where we know of 500; the third waits for the reset."""
    clock = Clock()
    scene.provider.close()
    scene.provider = Provider(Model(requests_per_minute=2), key=KEY, clock=clock)
    scene.work()
    made = scene.upload()
    limit = f"openai/{MODEL}"
    scene.wait(lambda: scene.clinic.operator.pause_of_limit(limit), "the headers pause the limit")
    # Nothing is claimed meanwhile, by anybody.
    scene.wait(lambda: scene.jobs(made.file_id)[4].status == "completed", "the third pass waits")
    assert scene.clinic.claim("other", "ai_queue_pass3") is None
    assert scene.provider.account().calls == 2
    left = scene.clinic.operator.pause_of_limit(limit)
    assert left is not None
    assert 30 < left.total_seconds() <= 60
    clock.now += 60
    scene.later("61 seconds")
    scene.finished(made.file_id)
    account = scene.provider.account()
    assert (account.calls, account.refused, account.over) == (3, 0, {})
    assert {(job.retry_count, job.deferrals) for job in scene.jobs(made.file_id)} == {(0, 0)}


def test_cp_67_an_answer_that_takes_too_long_is_a_failed_attempt(scene: Scene) -> None:
    """CP-67, CP-60: the call is given up and stays charged; the next attempt completes it."""
    scene.provider.hold.clear()
    scene.work(TRUNKLINE_CLINICAL_TIMEOUT="0.5")
    made = scene.upload()
    (failed,) = scene.wait(
        lambda: [job for job in scene.jobs(made.file_id) if job.retry_count], "an attempt failed"
    )
    assert (failed.job_type, failed.status) == ("ai_queue_pass1", "retrying")
    assert "Timeout" in json.dumps(failed.error_details)
    limit = scene.clinic.limit()
    assert (limit.active_requests, limit.current_tokens_minute) == (0, 1000)
    scene.provider.hold.set()
    scene.later("50 seconds")
    scene.finished(made.file_id)
    assert [job.retry_count for job in scene.jobs(made.file_id)] == [0, 0, 0, 1, 0, 0]
    assert scene.records(made.file_id)["entities"]["entities"]


@pytest.mark.parametrize("nonsense", ["I am sorry", '{"entities": 5}', "{}"])
def test_a_model_that_answers_nonsense_is_asked_again(scene: Scene, nonsense: str) -> None:
    """CP-48: its answer is not taken, and what it cost is charged."""
    said = [nonsense]
    scene.provider.close()
    scene.provider = Provider(
        Model(), key=KEY, write=lambda request: said.pop() if said else answers.write(request)
    )
    scene.work()
    made = scene.upload()
    (failed,) = scene.wait(
        lambda: [job for job in scene.jobs(made.file_id) if job.retry_count], "an attempt failed"
    )
    assert "does not match the schema" in json.dumps(failed.error_details)
    assert scene.clinic.limit().current_tokens_minute == scene.provider.account().tokens
    scene.later("50 seconds")
    scene.finished(made.file_id)
    assert scene.records(made.file_id)["entities"]["entities"]


def test_cp_24_the_registry_defines_what_a_pass_calls(scene: Scene) -> None:
    """CP-24, CP-99: another endpoint is a row, not code."""
    scene.provider.set_model("gpt-4-vision", Model())
    scene.clinic.operator.connection.execute(
        "update clinical.job_types set api_endpoint = 'gpt-4-vision' where job_type = %s",
        ("ai_queue_pass2",),
    )
    scene.work()
    made = scene.upload()
    scene.finished(made.file_id)
    assert {name: a.calls for name, a in scene.provider.accounts().items()} == {
        MODEL: 2,
        "gpt-4-vision": 1,
    }
    assert scene.clinic.limit("openai/gpt-4-vision").current_requests_minute == 1


def test_cp_24_a_separate_pass_calls_what_the_registry_defines(scene: Scene) -> None:
    """CP-24: also one that is enqueued by itself; what it calls is what its claim is charged."""
    scene.provider.set_model("gpt-4-vision", Model())
    scene.work()
    made = scene.upload()
    scene.finished(made.file_id)
    scene.clinic.operator.connection.execute(
        "update clinical.job_types set api_endpoint = 'gpt-4-vision' where job_type = %s",
        ("ai_queue_pass2",),
    )
    before = scene.clinic.limit().current_requests_minute
    found = scene.result(scene.chore("ai_queue_pass2", shell_file_id=str(made.file_id)))
    assert found["endpoint"] == "openai/gpt-4-vision"
    assert {name: a.calls for name, a in scene.provider.accounts().items()} == {
        MODEL: 3,
        "gpt-4-vision": 1,
    }
    assert scene.clinic.limit("openai/gpt-4-vision").current_requests_minute == 1
    assert scene.clinic.limit().current_requests_minute == before


def test_cp_25_a_full_lane_holds_documents_up_and_kills_none(scene: Scene) -> None:
    """CP-25, CP-08, CP-106: one may wait for an endpoint, three come; none is tried again."""
    change = "update clinical.api_rate_limits set queue_depth_limit = 1, status = %s"
    openai = "where provider_name = 'openai'"
    scene.clinic.operator.connection.execute(f"{change} {openai}".encode(), ("maintenance",))
    made = [scene.upload(name=f"scan-{n}.png") for n in range(3)]
    scene.work()
    scene.wait(
        lambda: all(scene.jobs(one.file_id)[2].status == "completed" for one in made),
        "all wait for the endpoint",
    )
    waiting = [scene.jobs(one.file_id)[3] for one in made]
    assert [(job.status, job.waiting_reason) for job in waiting] == [("pending", None)] * 3
    scene.clinic.operator.connection.execute(f"{change} {openai}".encode(), ("active",))
    scene.finished(*(one.file_id for one in made))
    jobs = [job for one in made for job in scene.jobs(one.file_id)]
    assert {(job.status, job.retry_count) for job in jobs} == {("completed", 0)}
    assert scene.provider.account().calls == 9


def test_cp_73_more_workers_do_not_exceed_a_limit(scene: Scene) -> None:
    """CP-73, CP-61, CP-03: as the provider counts; one document is uploaded twice."""
    scene.clinic.operator.connection.execute(
        "update clinical.api_rate_limits set concurrent_requests = 2 where api_endpoint = %s",
        (MODEL,),
    )
    scene.provider.set_model(MODEL, Model(concurrency=2, latency=(0.01, 0.1)))
    patients = [scene.clinic.patient, scene.clinic.admit()]
    made = [
        scene.upload(name=f"scan-{n}.png", key=f"scan-{n}", patient=patients[n % 2])
        for n in range(4)
    ]
    again = scene.upload(name="scan-0.png", key="scan-0", patient=patients[0])
    assert again == made[0]
    # Nobody is answered before two calls wait: how far the documents are apart is a matter of load.
    scene.provider.hold.clear()
    for _ in range(2):
        scene.work()
    scene.wait(lambda: scene.provider.under_way() == 2, "two calls are under way")
    scene.provider.hold.set()
    scene.finished(*(one.file_id for one in made))
    account = scene.provider.account()
    assert (account.calls, account.refused, account.over) == (12, 0, {})
    assert account.most_at_once == 2


def test_a_document_that_reaches_a_limit_is_refused_at_once(scene: Scene) -> None:
    """CP-48, CP-83: final, with its code, and no attempt is repeated; the worker goes on."""
    scene.work()
    large = typeset(report_lines(1)).replace(b"0 0 595 842", b"0 0 14400 14400")
    cut = scan(report_lines(1))[:-3]
    made = {
        "too_large": scene.upload(large, name="large.pdf", kind="application/pdf"),
        "damaged": scene.upload(cut, name="cut.png"),
    }
    for code, one in made.items():
        scene.wait(lambda one=one: scene.clinic.row(one.job_id).status == "failed", code)  # type: ignore[misc]
        row = scene.clinic.row(one.job_id)
        assert len(row.error_details["history"]) == 1
        assert code in row.error_details["message"]
    scene.finished(scene.upload().file_id)
