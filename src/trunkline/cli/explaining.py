"""What trunkline.explain says, as a sentence and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from trunkline.cli.output import amount, clean, moment, shown_error
from trunkline.model import Explanation

__all__ = ["sentence", "worth_telling"]

Detail = Mapping[str, Any]


def sentence(found: Explanation, now: datetime) -> str:
    """One reason for people."""
    detail = found.detail or {}
    if tell := _SENTENCES.get(found.reason):
        return tell(detail, moment(found.until, now))
    if found.reason in {"completed", "cancelled", "dead"}:
        return _ended(found.reason, detail)
    return clean(f"{found.reason} {dict(detail)}")


def worth_telling(found: Sequence[Explanation]) -> list[Explanation]:
    """Without its place in the queue where that is the first and something else holds it up."""
    held = [one for one in found if one.reason != "waiting_its_turn"]
    return held if held and not any((one.detail or {}).get("ahead") for one in found) else [*found]


def _running(detail: Detail, until: str) -> str:
    asked = "; its cancellation was asked for" if detail.get("cancel_requested_at") else ""
    worker = clean(detail.get("worker"))
    return f"It runs: attempt {detail.get('attempt')} on {worker}, lease until {until}{asked}"


def _scheduled(detail: Detail, until: str) -> str:
    failures = detail.get("failures")
    after = f", after {failures} failed attempts" if failures else ""
    return f"It is not due before {until}: {clean(detail.get('reason'))}{after}"


def _claims_disabled(_detail: Detail, _until: str) -> str:
    return (
        "No job is claimed at all: the setting claims_enabled is off. "
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
        f"No living worker serves queue {clean(detail.get('queue'))} and task "
        f"{clean(detail.get('task'))}. Start one with: trunkline worker APP; "
        "see who is there with: trunkline workers list"
    )


def _waiting_its_turn(detail: Detail, _until: str) -> str:
    ahead = int(detail.get("ahead", 0))
    if not ahead:
        return "It is the next of its queue: 0 ahead of it"
    return f"It waits for its turn: {_counted(detail)} ahead of it in the queue"


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
        f"; there may be room for it from {until} on"
        if until
        else "; it starts when a slot comes free"
    )
    return f"It waits for the limit {limit}: {_counted(detail)} ahead of it{when}"


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
        " it with: trunkline jobs cancel ID"
    )


def _counted(detail: Detail) -> str:
    ahead = int(detail.get("ahead", 0))
    return amount(ahead) + (" or more" if ahead >= int(detail.get("counted_up_to", 1000)) else "")


def _ended(state: str, detail: Detail) -> str:
    cause = shown_error(detail.get("last_error"), detail.get("reason"))
    why = f" ({cause})" if cause and state not in {"completed", cause} else ""
    again = ". Run it again with: trunkline dead replay ID" if state == "dead" else ""
    return f"It has ended: {state}{why}{again}"


_SENTENCES: Final[Mapping[str, Callable[[Detail, str], str]]] = {
    "breaker": _breaker,
    "claims_disabled": _claims_disabled,
    "limit": _limit,
    "no_worker": _no_worker,
    "queue_paused": _queue_paused,
    "running": _running,
    "scheduled": _scheduled,
    "set_aside": _set_aside,
    "waiting_its_turn": _waiting_its_turn,
}
