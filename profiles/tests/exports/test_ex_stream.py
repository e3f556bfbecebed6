"""Which events follow from which states: without a server and without waiting."""

import json
from typing import Any
from uuid import uuid4

from trunkline_profiles.exports.stream import CHECK_SECONDS, Event, Follower, is_final

JOB = str(uuid4())


def state(status: str = "processing", progress: int = 25, **more: Any) -> dict[str, Any]:
    return {
        "id": JOB,
        "status": status,
        "progress": progress,
        "resultUrl": None,
        "error": None,
    } | more


def read(parts: list[bytes]) -> list[tuple[str, Any]]:
    """The events and comments of some parts."""
    found: list[tuple[str, Any]] = []
    for part in parts:
        lines = part.decode().strip().split("\n")
        if lines[0].startswith(":"):
            found.append(("comment", None))
        else:
            fields = dict(line.split(": ", 1) for line in lines)
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_ex_43_the_state_is_sent_at_once_and_then_changes_only() -> None:
    """EX-42, EX-43: checked twice a second, with a comment every 15 seconds."""
    assert CHECK_SECONDS == 0.5
    follower = Follower(100.0)
    assert read(follower.step(state(), 100.0)) == [
        ("progress", {"jobId": JOB, "status": "processing", "progress": 25})
    ]
    assert follower.step(state(), 100.5) == []
    assert read(follower.step(state(progress=50), 101.0))[0][1]["progress"] == 50
    assert follower.step(state(progress=50), 115.9) == []
    assert read(follower.step(state(progress=50), 116.0)) == [("comment", None)]
    assert follower.step(state(progress=50), 130.9) == []
    assert read(follower.step(state(progress=50), 131.0)) == [("comment", None)]
    assert not follower.is_over


def test_ex_44_it_ends_after_the_final_event_or_a_minute() -> None:
    """EX-40, EX-42, EX-44: with `timeout`, which is no error."""
    for status in ("completed", "failed", "cancelled"):
        follower = Follower(0.0)
        found = read(follower.step(state(status, 100, resultUrl="/x", error="e"), 0.0))
        assert found == [(status, {"jobId": JOB, "resultUrl": "/x", "error": "e"})]
        assert follower.is_over
    follower = Follower(0.0)
    follower.step(state(), 0.0)
    follower.step(state(), 59.9)
    assert not follower.is_over
    ((name, data),) = read(follower.step(state(), 60.0))
    assert (name, list(data)) == ("timeout", ["message"])
    assert follower.is_over


def test_ex_42_a_lost_export_has_an_event_of_its_own_name() -> None:
    """EX-42: not `error`, which browsers use for their connection."""
    follower = Follower(0.0)
    assert read(follower.step(None, 0.0))[0][0] == "job_error"
    assert follower.is_over


def test_ex_92_a_client_that_has_seen_the_end_is_told_nothing() -> None:
    """EX-92: the id of the final event, and of no other state."""
    done = state("completed", 100)
    (part,) = Follower(0.0).step(done, 0.0)
    last = part.decode().split("\n")[0].removeprefix("id: ")
    assert is_final(done, last)
    assert not is_final(done, None)
    assert not is_final(done, "x")
    assert not is_final(state(), f"{JOB}:processing:25")


def test_ex_91_a_batch_has_its_jobs_in_each_event() -> None:
    """EX-50, EX-91: also one of which a part has failed ends with one event."""
    jobs = [{"id": JOB, "status": "failed", "progress": 75}]
    batch = {"batchId": "b", "status": "partial", "progress": 100, "jobs": jobs, "resultUrl": "/z"}
    ((name, data),) = read(Follower(0.0).step(batch, 0.0))
    assert (name, data["batchId"], data["jobs"], data["resultUrl"]) == (
        *("completed", "b", jobs, "/z"),
    )
    live = batch | {"status": "processing", "progress": 0}
    ((name, data),) = read(Follower(0.0).step(live, 0.0))
    assert (name, data["status"], data["progress"]) == ("progress", "processing", 0)


def test_text_of_an_error_cannot_break_the_stream() -> None:
    """EX-42: a line break in data would begin another field."""
    part = Event("failed", {"error": "a\n\nevent: completed\ndata: {}"}, "1").encode()
    assert part.count(b"\n\n") == 1
    assert part.count(b"event:") == 2
