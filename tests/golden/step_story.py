"""The situations of steps, waits and child jobs in a `Story`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from tests.support.calls import Attempt

if TYPE_CHECKING:
    from tests.golden.story import Story

__all__ = ["play_steps"]

_BEGIN = "select (trunkline.begin_wait('w1', %s, %s, %s, %s, %s, '#1', null, %s)).outcome"
_WAITS = ((2, "sleep", "sleep", "1 hour"), (3, "event", "go", None))
_RECORD = "select trunkline.record_steps('w1', %s, %s, '{1}', '{read}', '{#1}', '{null}', '{1}')"


def play_steps(story: Story) -> None:
    """A job records a step, sleeps, waits for events, runs a step once, and waits for a child."""
    story.producer.register("stepped", max_attempts=1)
    job = story.start("stepped")
    story.tell("verdict", story.worker.value(_RECORD, [job.job], [job.number])[0])
    for _ in range(2):
        for wait in _WAITS:
            _wait(story, job, *wait)
        story.end("suspend", job)
        story.explain(job.job)
        if story.operator.value("select (trunkline.job(%s)).state", job.job) == "scheduled":
            story.database.move_time("1 hour")
            (job,) = story.claim("stepped")
    for event in ("go", "go", "later"):
        send = "select outcome from trunkline.send_event(%s, '1', %s)"
        story.tell("sent event", story.producer.value(send, event, job.job))
    (job,) = story.claim("stepped")
    _wait(story, job, 4, "event", "no", "0")
    _run_once(story, job)
    _have_a_child(story, job)
    story.end("fail", job, errors=[Jsonb({"message": "no"})])
    story.operator.value("select trunkline.reset_step(%s, 'read')", job.job)
    story.operator.change("retry_fresh", job.job)
    story.end("complete", story.claim("stepped")[0])


def _wait(story: Story, job: Attempt, *wait: int | str | None) -> None:
    story.tell("wait", story.worker.value(_BEGIN, job.job, job.number, *wait))


def _run_once(story: Story, job: Attempt) -> None:
    begin = "select (trunkline.begin_once('w1', %s, %s, 5, 'base')).outcome"
    record = "select trunkline.record_once('w1', %s, %s, 'base', '1')"
    story.tell("wait", story.worker.value(begin, job.job, job.number))
    story.tell("verdict", story.worker.value(record, job.job, job.number))
    story.tell("wait", story.worker.value(begin, job.job, job.number))


def _have_a_child(story: Story, job: Attempt) -> None:
    begin = "select (trunkline.begin_jobs('w1', %s, %s, 6, '#1', %s)).outcome"
    steps = Jsonb([{"name": "once", "task": "once", "items": [{}]}])
    story.tell("wait", story.worker.value(begin, job.job, job.number, steps))
    story.end("fail", story.claim("once")[0])
    story.tell("wait", story.worker.value(begin, job.job, job.number, steps))
