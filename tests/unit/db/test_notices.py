"""Notices of the engine are logged once an hour for each pair, and never fail a call."""

import json
import logging
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from trunkline.db import notices

_LATE, _OTHER = "01TL0", "01TL1"


class Clock:
    now = 10_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Clock:
    made = Clock()
    monkeypatch.setattr(notices, "time", made)
    monkeypatch.setattr(notices, "_logged", {})
    monkeypatch.setattr(notices, "_other_tasks", {})
    caplog.set_level(logging.INFO, logger="trunkline")
    return made


def _late(task: str = "t", limit: str = "openai") -> str:
    return json.dumps({"task": task, "limit": limit, "seconds": 7})


def _other(job: UUID, task: str = "t", other: str = "u") -> str:
    return json.dumps({"task": task, "job": str(job), "job_task": other, "profile": "p"})


def test_a_late_call_is_logged_once_an_hour(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    notices.log_notice(_LATE, _late())
    assert caplog.messages == [
        (
            "an attempt of t ended 7 s after it was charged to limit openai, without ctx.http,"
            " ctx.grant or ctx.settle: a late call may have exceeded the limit. See"
            " `trunkline limits show openai`, which counts further ones; they are not logged for an"
            " hour"
        )
    ]
    clock.now += 3599
    notices.log_notice(_LATE, _late())
    assert len(caplog.records) == 1
    clock.now += 1
    notices.log_notice(_LATE, _late())
    notices.log_notice(_LATE, _late())
    assert len(caplog.records) == 2
    # Another task and another limit are other news.
    notices.log_notice(_LATE, _late(task="x"))
    notices.log_notice(_LATE, _late(limit="x"))
    assert len(caplog.records) == 4


def test_a_job_of_another_task_is_logged_and_remembered(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = uuid4(), uuid4()
    assert notices.task_in_notice(first) is None
    notices.log_notice(_OTHER, _other(first))
    notices.log_notice(_OTHER, _other(second))
    assert caplog.messages == [
        (
            f"enqueuing t returned job {first} of task u, which holds the same unique key: within"
            " profile p a key counts for all tasks. Include the name of the task in the key;"
            " further ones are not logged for an hour"
        )
    ]
    assert notices.task_in_notice(first) == notices.task_in_notice(second) == "u"
    assert notices.task_in_notice(uuid4()) is None


def test_only_the_newest_jobs_are_remembered(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_MOST_OTHER_TASKS", 2)
    jobs = [uuid4() for _ in range(3)]
    for job in jobs:
        notices.log_notice(_OTHER, _other(job))
    assert [notices.task_in_notice(job) for job in jobs] == [None, "u", "u"]


@pytest.mark.parametrize(
    ("sqlstate", "detail"),
    [
        (None, None),
        ("00000", _late()),
        (_LATE, None),
        (_LATE, "no json"),
        (_LATE, "[]"),
        (_LATE, '{"task": "t"}'),
        (_LATE, '{"task": "t", "limit": "l", "seconds": null}'),
    ],
)
def test_a_notice_that_is_not_understood_is_dropped(
    clock: Clock, caplog: pytest.LogCaptureFixture, sqlstate: str | None, detail: str | None
) -> None:
    notices.log_notice(sqlstate, detail)
    assert caplog.records == []


def test_a_connection_is_heeded(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    handlers: list[Any] = []
    connection = SimpleNamespace(add_notice_handler=handlers.append)
    notices.heed(connection)  # type: ignore[arg-type]
    (handler,) = handlers
    handler(SimpleNamespace(sqlstate=_LATE, message_detail=_late()))
    assert len(caplog.records) == 1
