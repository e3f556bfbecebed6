"""Why a job is not running, as sentences that name the command that helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from trunkline.cli.output import amount, clean, count, moment, shown_error
from trunkline.model import Explanation

__all__ = ["relevant", "sentence"]

Detail = Mapping[str, Any]


def sentence(job_id: UUID, explanation: Explanation, now: datetime) -> str:
    """Return one reason as a sentence."""
    # The commands in the sentences name the job.
    detail = {**(explanation.detail or {}), "job_id": job_id}
    if form := _SENTENCES.get(explanation.reason):
        return form(detail, moment(explanation.until, now))
    if explanation.reason in {"completed", "cancelled", "dead"}:
        return _ended(explanation.reason, detail)
    return clean(f"{explanation.reason} {dict(explanation.detail or {})}")


def relevant(explanations: Sequence[Explanation]) -> list[Explanation]:
    """Leave out the position in the queue if the job is next and waits for something else."""
    others = [row for row in explanations if row.reason != "waiting_its_turn"]
    if others and not any((row.detail or {}).get("ahead") for row in explanations):
        return others
    return [*explanations]


def _running(detail: Detail, until: str) -> str:
    asked = " Its worker was asked to stop." if detail.get("cancel_requested_at") else ""
    worker = clean(detail.get("worker"))
    return f"It runs: attempt {detail.get('attempt')} on {worker}, lease until {until}.{asked}"


def _scheduled(detail: Detail, until: str) -> str:
    failures, reason = detail.get("failures"), clean(detail.get("reason") or "")
    after = f", after {count(failures, 'failed attempt')}" if failures else ""
    # A job that was enqueued with a delay has no reason.
    why = f": {reason}" if reason and reason != "not due yet" else ""
    return f"It is not due before {until}{why}{after}."


def _claims_disabled(_detail: Detail, _until: str) -> str:
    return (
        "No jobs are claimed: the setting claims_enabled is off. "
        "Switch it on with: trunkline settings reset claims_enabled"
    )


def _queue_paused(detail: Detail, _until: str) -> str:
    why = f" ({clean(detail['reason'])})" if detail.get("reason") else ""
    queue = clean(detail.get("queue"))
    return (
        f"The queue {queue} is paused by {clean(detail.get('by'))}{why}. "
        f"Resume it with: trunkline queues resume {queue}"
    )


def _no_worker(detail: Detail, _until: str) -> str:
    return (
        f"No live worker serves queue {clean(detail.get('queue'))} and task "
        f"{clean(detail.get('task'))}. Start one with: trunkline worker APP. "
        "List the workers with: trunkline workers list"
    )


def _waiting_its_turn(detail: Detail, _until: str) -> str:
    ahead = int(detail.get("ahead", 0))
    if not ahead:
        return "It is the next job of its queue."
    return f"It waits for its turn: {_counted(detail)} ahead of it in the queue."


def _dependency(detail: Detail, _until: str) -> str:
    steps = [
        f"{clean(step['step'])} ({step['completed']} of "
        f"{'?' if step['jobs'] is None else step['jobs']} completed)"
        for step in detail.get("open") or ()
    ]
    waits = f"these steps of its workflow: {', '.join(steps)}" if steps else "its workflow"
    return (
        f"It waits for {waits}. "
        f"Show them with: trunkline workflows show {clean(detail.get('workflow'))}"
    )


def _breaker(detail: Detail, until: str) -> str:
    name = clean(detail.get("breaker"))
    why = f" ({clean(detail['reason'])})" if detail.get("reason") else ""
    when = (
        f"The next job is tried at {until}"
        if until
        else "One job is being tried; the others start when it succeeds"
    )
    return (
        f"The breaker {name} is {clean(detail.get('state')).replace('_', '-')}{why}. {when}. "
        f"Close it at once with: trunkline breakers reset '{name}'"
    )


def _limit(detail: Detail, until: str) -> str:
    limit = clean(detail.get("limit"))
    if detail.get("status") != "active":
        why = f" ({clean(detail['reason'])})" if detail.get("reason") else ""
        return (
            f"The limit {limit} is in {clean(detail.get('status'))}{why}. "
            f"Resume it with: trunkline limits resume '{limit}'"
        )
    when = (
        f"There may be room for it from {until} on."
        if until
        else "It starts when a slot becomes free."
    )
    return f"It waits for the limit {limit}: {_counted(detail)} ahead of it. {when}"


def _set_aside(detail: Detail, until: str) -> str:
    if "cost" not in detail:
        return f"It was set aside. {clean(detail.get('hint'))}"
    limit, unit = clean(detail.get("limit")), clean(detail.get("unit"))
    dies = f" It becomes a dead letter at {until}." if until else ""
    cost, most = amount(int(detail.get("cost", 0))), amount(int(detail.get("most", 0)))
    command = "quotas" if detail.get("quota") else "limits"
    return (
        f"It is set aside: it costs {cost} {unit}, and the limit {limit} gives at most {most} at"
        f" once.{dies} Raise the limit with: trunkline {command} set"
        f" '{clean(detail.get('template', limit))}'; the job then returns to its place. Or cancel"
        f" it with: trunkline jobs cancel {detail['job_id']}"
    )


def _counted(detail: Detail) -> str:
    ahead = int(detail.get("ahead", 0))
    more = ahead >= int(detail.get("counted_up_to", 1000))
    return f"{ahead:,} or more jobs" if more else count(ahead, "job")


def _ended(state: str, detail: Detail) -> str:
    cause = shown_error(detail.get("last_error"), detail.get("reason"))
    why = f" ({cause})" if cause and state not in {"completed", cause} else ""
    again = f" Run it again with: trunkline dead replay {detail['job_id']}"
    return f"It has ended: {state}{why}." + (again if state == "dead" else "")


_SENTENCES: Final[Mapping[str, Callable[[Detail, str], str]]] = {
    "breaker": _breaker,
    "claims_disabled": _claims_disabled,
    "dependency": _dependency,
    "limit": _limit,
    "no_worker": _no_worker,
    "queue_paused": _queue_paused,
    "running": _running,
    "scheduled": _scheduled,
    "set_aside": _set_aside,
    "waiting_its_turn": _waiting_its_turn,
}
