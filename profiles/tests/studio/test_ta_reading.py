"""Reading a job: by its user only, with links that are signed at that moment."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import psycopg
import pytest

from profiles.tests.studio.conftest import AUDIO, FINAL, PARAMS, PDF, TEXT, Studio
from trunkline.artifacts import Answer, LocalStore, answer_link
from trunkline.errors import FileHeadersUnsafe
from trunkline_profiles.studio import api


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def job(studio: Studio, store: LocalStore) -> UUID:
    """A job with one document, whose files are in the store."""
    job = studio.order()
    for kind in (TEXT, PDF, AUDIO):
        (task,) = studio.claim(kind, count=1)
        output, (file,) = studio.product(task)
        written = store.put(file["path"], [b"content of " + output["name"].encode()])
        studio.complete(
            task.id, output, [file | {"bytes": written.bytes, "sha256": written.sha256}]
        )
    return job


def read(studio: Studio, store: Any, job: UUID, **more: Any) -> api.Answer:
    user = more.pop("user", studio.user)
    return api.read_job(studio.producer.connection, store, user, job, **more)


def test_a_start_returns_id_and_status(studio: Studio) -> None:
    """TA-04, TA-05, TA-07: and with 400 for what is wrong; nothing is stored then."""
    connection = studio.producer.connection
    body = {"type": "nuclear_v2", "params": PARAMS}
    answer = api.start_job(connection, studio.user, body, "key")
    assert (answer.status, answer.body and answer.body["status"]) == (202, "queued")
    assert api.start_job(connection, studio.user, body, "key") == answer
    for wrong in ({"type": "x", "params": PARAMS}, {"type": "nuclear_v2", "params": {}}, {}):
        refusal = api.start_job(connection, studio.user, wrong)
        assert refusal.status == 400
        assert refusal.body is not None
        assert refusal.body["error"]
    assert len(studio.rows("select id from studio.jobs")) == 1


def test_files_appear_while_the_job_still_runs(studio: Studio, store: Any, job: UUID) -> None:
    """TA-45, TA-69: as soon as their task is complete."""
    answer = read(studio, store, job)
    assert answer.status == 200
    assert answer.body is not None
    assert answer.body["id"] == str(job)
    assert answer.body["status"] == "processing"
    assert set(answer.body["progress"]) == {
        *("percent", "phase", "docsComplete", "docsTotal", "message")
    }
    files = {one["type"]: one for one in answer.body["artifacts"]}
    assert set(files) == {"json", "pdf", "audio_mp3"}
    assert files["audio_mp3"]["duration"] == 61.5
    assert {one["name"] for one in files.values()} == {
        *("chapter1.json", "chapter1.pdf", "chapter1.mp3")
    }


def test_another_user_and_an_unknown_id_get_404(studio: Studio, store: Any, job: UUID) -> None:
    """TA-45, TA-S08."""
    assert read(studio, store, job, user=uuid4()).status == 404
    assert read(studio, store, uuid4()).status == 404
    assert api.cancel_job(studio.producer.connection, uuid4(), job).status == 404
    cancelled = api.cancel_job(studio.producer.connection, studio.user, job)
    assert cancelled.status == 202


def test_a_link_of_yesterday_s_file_is_created_today_and_lasts_an_hour(
    studio: Studio, store: LocalStore, job: UUID
) -> None:
    """TA-46, TA-74, TA-S08: without sign-in, with byte ranges, and stored nowhere."""
    studio.pass_time("1 day")
    answer = read(studio, store, job)
    assert answer.body is not None
    link = next(one["url"] for one in answer.body["artifacts"] if one["type"] == "audio_mp3")
    assert "3600" in link or "expires" in link.lower()
    stored = studio.database.superuser().execute(
        "select count(*) from trunkline.artifacts as a where a::text like '%sign%'"
        " or a::text like '%http%'"
    )
    assert stored.fetchone() == (0,)
    whole = follow_link(store, link)
    assert (whole.status, b"".join(whole.body)) == (200, b"content of chapter1.mp3")
    part = follow_link(store, link, range="bytes=11-18")
    assert (part.status, b"".join(part.body)) == (206, b"chapter1")


def test_a_link_opens_no_other_file(studio: Studio, store: LocalStore, job: UUID) -> None:
    """TA-51: the signature covers the path, and there is no list of files."""
    answer = read(studio, store, job)
    assert answer.body is not None
    links = {one["type"]: one["url"] for one in answer.body["artifacts"]}
    paths = {row.artifact_type: row.storage_path for row in studio.artifacts(job)}
    moved = links["pdf"].replace(paths["pdf"], paths["json"])
    assert moved != links["pdf"]
    assert follow_link(store, moved).status in {403, 404}
    folder = links["pdf"].replace(paths["pdf"], paths["pdf"].rpartition("/")[0])
    assert follow_link(store, folder).status in {403, 404}
    assert follow_link(store, links["pdf"].partition("?")[0]).status in {400, 403, 404}


def test_a_file_that_is_unsafe_for_browsers_has_no_link(
    studio: Studio, store: LocalStore, job: UUID
) -> None:
    """TA-45: the answer still has all the others."""

    class Suspicious:
        def sign(self, path: str, **options: Any) -> str:
            if path.endswith(".pdf"):
                raise FileHeadersUnsafe(path)
            return store.sign(path, **options)

    answer = read(studio, Suspicious(), job)
    assert answer.body is not None
    links = {one["type"]: one["url"] for one in answer.body["artifacts"]}
    assert links.pop("pdf") is None
    assert links
    assert all(links.values())


def follow_link(store: LocalStore, link: str, **headers: str) -> Answer:
    """Get what the server of the links answers."""
    parts = urlsplit(link)
    path = parts.path.removeprefix("/files").lstrip("/")
    return answer_link(store, "GET", path, parts.query, headers)


def test_an_unchanged_job_costs_little(studio: Studio, store: Any, job: UUID) -> None:
    """TA-47: the tag is that of the content, not of the links."""
    first = read(studio, store, job)
    tag = first.headers["ETag"]
    again = read(studio, store, job, if_none_match=tag)
    assert (again.status, again.body) == (304, None)
    studio.work(TEXT, count=1)
    changed = read(studio, store, job, if_none_match=tag)
    assert changed.status == 200
    assert changed.headers["ETag"] != tag


def test_a_tag_does_not_outlive_its_links(studio: Studio, store: Any, job: UUID) -> None:
    """TA-46, TA-47: links are valid for an hour; the tag changes within half an hour."""
    hour = 1_000_000 * 3600.0
    tag = read(studio, store, job, clock=lambda: hour).headers["ETag"]
    later = read(studio, store, job, clock=lambda: hour + 1799, if_none_match=tag)
    assert later.status == 304
    expired = read(studio, store, job, clock=lambda: hour + 1800, if_none_match=tag)
    assert expired.status == 200
    assert expired.body is not None
    assert all("url" in one for one in expired.body["artifacts"])


def test_a_job_without_files_keeps_its_tag(studio: Studio, store: Any) -> None:
    """TA-47: there are no links that could expire."""
    job = studio.order()
    tag = read(studio, store, job, clock=lambda: 0.0).headers["ETag"]
    assert read(studio, store, job, clock=lambda: 1e6, if_none_match=tag).status == 304


def test_refusals_have_a_status_and_a_stable_code(studio: Studio) -> None:
    """TA-05, TA-07, TA-66: also those of the engine, and those of the cut-over."""
    connection = studio.producer.connection
    body = {"type": "nuclear_v2", "params": PARAMS}
    assert api.start_job(connection, studio.user, body, "key").status == 202
    other = {"type": "nuclear_v2", "params": PARAMS | {"systems": ["western"]}}
    assert problem(api.start_job(connection, studio.user, other, "key")) == (
        *(409, "idempotency_mismatch"),
    )
    wrong = {"type": "nuclear_v2", "params": {}}
    assert problem(api.start_job(connection, studio.user, wrong)) == (400, "studio_invalid_params")
    long = api.start_job(connection, studio.user, body, "k" * 5000)
    assert long.status in range(400, 500)
    take = "select studio.run_step('cutover', 'dual_read', false)"
    studio.operator.connection.execute(take)
    assert problem(api.start_job(connection, studio.user, body)) == (409, "studio_start_elsewhere")
    assert len(studio.rows("select id from studio.jobs")) == 1


def test_a_full_queue_is_answered_with_a_time_to_come_back(studio: Studio) -> None:
    """A refusal that may not last."""
    studio.operator.connection.execute("select trunkline.limit_queue('studio', 10)")
    body = {"type": "nuclear_v2", "params": PARAMS}
    answer = api.start_job(studio.producer.connection, studio.user, body)
    assert problem(answer) == (429, "queue_full")
    assert answer.headers == {"Retry-After": "30"}


def test_an_error_that_is_no_refusal_is_raised(studio: Studio) -> None:
    """A route answers it with 500."""
    reader = studio.database.connect("trunkline_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        api.start_job(reader, studio.user, {"type": "nuclear_v2", "params": PARAMS})


def problem(answer: api.Answer) -> tuple[int, str]:
    """The status and the code of a refusal, which also has a message and a hint."""
    assert answer.body is not None
    assert answer.body["error"]
    assert answer.body["hint"]
    return answer.status, answer.body["code"]


def test_changes_are_streamed_from_the_database(studio: Studio, store: Any) -> None:
    """TA-47, TA-75: polls after 2 s, then up to 10 while nothing changes; ends with the job."""
    studio.unlimited()
    job = studio.order()
    waits: list[float] = []
    steps = _story(studio)

    def pause(seconds: float) -> None:
        waits.append(round(seconds, 2))
        next(steps)

    def ask(tag: str | None) -> api.Answer:
        return read(studio, store, job, if_none_match=tag)

    seen = [body["progress"]["percent"] for body in api.follow(ask, pause, draw=lambda: 0.5)]
    assert seen == [0, 50, 70, 95, 100]
    assert waits[:6] == [2.0, 3.0, 4.5, 6.75, 10.0, 10.0]
    # After a change it polls quickly again.
    assert waits[7] == 2.0


def _story(studio: Studio) -> Iterator[None]:
    for _ in range(6):
        yield
    studio.finish(TEXT)
    yield
    studio.finish(PDF)
    yield
    studio.finish(AUDIO)
    yield
    studio.work(FINAL)
    yield


def test_following_an_unknown_job_ends_at_once(studio: Studio, store: Any) -> None:
    """TA-75."""
    assert list(api.follow(lambda _: read(studio, store, uuid4()), lambda _: None)) == []


def test_the_answer_is_json(studio: Studio, store: Any, job: UUID) -> None:
    """TA-45."""
    answer = read(studio, store, job)
    assert json.loads(json.dumps(answer.body)) == answer.body
