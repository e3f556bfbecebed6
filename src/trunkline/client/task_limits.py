"""The limits that a task names, and those that its code declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.errors import InvalidDuration, InvalidTask
from trunkline.model import Breaker, TaskPolicy, seconds

__all__ = ["limits_of", "provider_limit"]

_FAIR = "fair:"
_TASK = "task/"
_MINUTE = 60
_DAY = 86400


def limits_of(
    task: str,
    queue: str,
    *,
    limit: str | Sequence[str] | None,
    concurrency: int | Mapping[str, int] | None,
    fair: bool,
    breaker: bool | Breaker,
) -> dict[str, Any]:
    """Return the limits of a policy in order, and the definitions of those it declares."""
    named = _named(task, limit)
    declares: dict[str, dict[str, Any]] = {}
    if not isinstance(fair, bool):
        raise InvalidTask(f"fair of {task} is {fair!r}", hint="Pass True or False.")
    if fair:
        declares[f"{_FAIR}{_encoded(queue)}/{{tenant}}"] = {"weight": 1}
    own = {**_own_concurrency(task, concurrency), **_breaker(task, breaker)}
    if isinstance(concurrency, Mapping):
        declares |= {key: {"concurrency": slots} for key, slots in concurrency.items()}
    if own:
        if "{" in task or "}" in task:
            raise InvalidTask(
                f"The name of {task} has braces, which stand for keys in names of limits",
                hint="Give it another name: @app.task(name=...).",
            )
        declares[_TASK + task] = own
    if limit is None and not declares:
        return {}
    first = [name for name in declares if name.startswith(_FAIR)]
    rest = [name for name in declares if name not in first]
    names = (*first, *named, *rest)
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise InvalidTask(
            f"Task {task} names a limit twice: " + ", ".join(duplicates),
            hint="Name each once: in limit=, or in concurrency= with its number.",
        )
    return {"limits": names, "declares": declares} if declares else {"limits": names}


def _encoded(text: str) -> str:
    """Encode a value as the engine does in limit names: a slash would end the group's name."""
    for character in "%/{}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def provider_limit(policy: TaskPolicy) -> str | None:
    """Return the first limit that is neither for fairness nor declared by the task itself."""
    declared = policy.declares or {}
    for name in policy.limits or ():
        if name not in declared and not name.startswith((_FAIR, _TASK)):
            return name
    return None


def _named(task: str, limit: str | Sequence[str] | None) -> tuple[str, ...]:
    if limit is None:
        return ()
    names = (limit,) if isinstance(limit, str) else tuple(limit)
    for name in names:
        if not name or not _is_text(name):
            raise InvalidTask(
                f"A limit of {task} is {name!r}", hint='Pass names: limit=["openai"].'
            )
    return names


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _own_concurrency(task: str, concurrency: object) -> dict[str, Any]:
    if concurrency is None:
        return {}
    if isinstance(concurrency, Mapping):
        for key, slots in concurrency.items():
            if not isinstance(key, str) or not key:
                raise InvalidTask(
                    f"A key of concurrency of {task} is {key!r}",
                    hint='Pass names with keys: concurrency={"document/{document}": 1}.',
                )
            _check_slots(task, slots)
        return {}
    _check_slots(task, concurrency)
    return {"concurrency": concurrency}


def _check_slots(task: str, slots: object) -> None:
    if not isinstance(slots, int) or isinstance(slots, bool) or slots < 1:
        raise InvalidTask(
            f"concurrency of {task} is {slots!r}",
            hint='Pass how many run at once: 3, or by key {"document/{document}": 1}.',
        )


def _breaker(task: str, breaker: object) -> dict[str, Any]:
    if isinstance(breaker, bool):
        return Breaker().as_parts() if breaker else {}
    if not isinstance(breaker, Breaker):
        raise InvalidTask(
            f"breaker of {task} is {type(breaker).__qualname__}",
            hint='Pass True, or Breaker(failures=10, share=0.2, window="10m", probe_after="1m").',
        )
    problem = _misfit(breaker)
    if problem:
        raise InvalidTask(f"breaker of {task}: {problem}", hint="See the reference of Breaker.")
    return breaker.as_parts()


def _misfit(breaker: Breaker) -> str | None:
    failures: object = breaker.failures
    share: object = breaker.share
    if not isinstance(failures, int) or isinstance(failures, bool) or failures < 1:
        return f"failures is {failures!r}, not 1 or more"
    if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0 <= share <= 1:
        return f"share is {share!r}, not between 0 and 1"
    try:
        if not _MINUTE <= seconds(breaker.window) <= _DAY:
            return f"window is {breaker.window!r}, not between a minute and a day"
        if not 1 <= seconds(breaker.probe_after) <= _DAY:
            return f"probe_after is {breaker.probe_after!r}, not between a second and a day"
    except InvalidDuration as error:
        return str(error)
    return None
