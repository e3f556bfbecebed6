"""Generates docs/reference/python.md from the signatures and docstrings of the public names."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, is_typeddict

from tools.generate_reference_fields import fields
from tools.markdown import REFERENCE, cell, code, fence, page, table
from trunkline.errors import TrunklineError

__all__ = ["INNER", "LED_TO", "MADE", "MODULES", "generate"]

# In the order of the page; every name of their __all__ is on it.
MODULES = {
    "trunkline": "Everything an application needs.",
    "trunkline.handler": "What a handler's context leads to.",
    "trunkline.worker": "Running workers from Python; the command line does it with these.",
    "trunkline.operate": (
        "What an operator can ask and do. `SyncOperator` has the same verbs without `await`."
    ),
    "trunkline.http_client": (
        "A client of the [HTTP API](../how-to/http.md). `SyncApiClient` has the same verbs without "
        "`await`."
    ),
    "trunkline.http": "For profiles that add routes to the HTTP API, and programs that mount it.",
    "trunkline.testing": "For tests of your own tasks, on the real engine.",
    "trunkline.profiles": "Profiles: ship one of your own, install it and use it.",
}
# Classes that users reach through public names without importing them: heading and location.
LED_TO = {
    "trunkline": {
        "Arguments of `@app.task`": ("trunkline.client.task_arguments", "TaskArguments"),
        "Arguments of `task.options`": ("trunkline.client.request", "Options"),
        "`app.jobs`": ("trunkline.client._async.jobs", "AsyncJobs"),
    },
    "trunkline.http_client": {
        "`api.jobs`": ("trunkline.http_client._async.client", "AsyncApiJobs"),
        "`api.workflows`": ("trunkline.http_client._async.client", "AsyncApiWorkflows"),
        "`api.artifacts`": ("trunkline.http_client._async.client", "AsyncApiArtifacts"),
    },
    "trunkline.operate": {
        "`operator.jobs`": ("trunkline.operate._async.jobs", "AsyncOperatedJobs"),
        "`operator.keys`": ("trunkline.operate._async.keys", "AsyncKeys"),
        "`operator.dead`": ("trunkline.operate._async.dead", "AsyncDeadLetters"),
        "`operator.queues`": ("trunkline.operate._async.queues", "AsyncQueues"),
        "`operator.limits`": ("trunkline.operate._async.limits", "AsyncLimits"),
        "`operator.quotas`": ("trunkline.operate._async.quotas", "AsyncQuotas"),
        "`operator.breakers`": ("trunkline.operate._async.breakers", "AsyncBreakers"),
        "`operator.schedules`": ("trunkline.operate._async.schedules", "AsyncSchedules"),
        "`operator.workers`": ("trunkline.operate._async.workers", "AsyncWorkers"),
        "`operator.duties`": ("trunkline.operate._async.duties", "AsyncDuties"),
        "`operator.settings`": ("trunkline.operate._async.settings", "AsyncSettings"),
        "`operator.tasks`": ("trunkline.operate._async.settings", "AsyncTasks"),
        "`operator.activity`": ("trunkline.operate._async.activity", "AsyncActivity"),
        "`operator.log`": ("trunkline.operate._async.log", "AsyncLog"),
    },
}
# Only Trunkline creates these, so their constructors are left out.
MADE = {
    *("AsyncJobs", "AsyncJobHandle", "Job", "Options", "Request", "Task"),
    *("Context", "JobContext", "SyncContext", "Grant", "GrantRequest"),
    *("SyncGrant", "SyncGrantRequest", "SyncTransaction", "Transaction"),
    *("AsyncApiArtifacts", "AsyncApiJobs", "AsyncApiWorkflows", "AsyncKeys", "CallerSession"),
    *("AsyncActivity", "AsyncBreakers", "AsyncDeadLetters", "AsyncDuties", "AsyncLimits"),
    *("AsyncLog", "AsyncOperatedJobs", "AsyncQueues", "AsyncQuotas", "AsyncSchedules"),
    *("AsyncSettings", "AsyncTasks", "AsyncWorkers"),
    *("Account", "Demo", "Session"),
}
# Methods of public classes that only the package itself uses.
INNER = {"as_fields", "as_json", "but", "decode_result", "settle_answer"}
_WIDTH = 88
_INTRODUCTION = """
This page lists the public names with their signatures. A duration is a `timedelta`, a number of
seconds, or text such as `"500ms"`, `"10s"`, `"5m"`, `"1h30m"`. Every method of `app` and of tasks
that you await has a synchronous version under `.sync`, generated from the same source.
"""
_STARS: dict[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
# Names appear without the module that defines them.
_QUALIFIER = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")


def generate() -> dict[Path, str | None]:
    """Return the page and the text it should have."""
    parts: list[str] = []
    shown: set[int] = set()
    for name, text in MODULES.items():
        module = importlib.import_module(name)
        parts += [f"## Module {code(name)}", text, *_module(module, shown)]
        for heading, (home, led_to) in LED_TO.get(name, {}).items():
            value = getattr(importlib.import_module(home), led_to)
            parts += [f"### {heading}", *_class(led_to, value)]
    return {REFERENCE / "python.md": page("Python reference", _INTRODUCTION, *parts)}


def _module(module: ModuleType, shown: set[int]) -> Iterator[str]:
    errors = []
    for name in module.__all__:
        value = getattr(module, name)
        if name.startswith("__") or id(value) in shown:
            continue
        shown.add(id(value))
        if inspect.isclass(value) and issubclass(value, TrunklineError):
            errors.append((name, value))
            continue
        yield f"### {code(name)}"
        yield from _described(name, value)
    if errors:
        yield f"### Errors of {code(module.__name__)}"
        rows = [
            [f"[{code(name)}](errors/{error.code}.md)", _first_line(error)]
            for name, error in errors
        ]
        yield table(["class", "meaning"], rows)


def _described(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _class(name, value)
    elif callable(value):
        yield fence(_definition(name, value))
        yield _doc(value)
    elif value.__doc__ == type(value).__doc__:
        yield fence(f"{name} = {_annotation(value)}")
    else:
        yield _doc(value)


def _class(name: str, value: type) -> Iterator[str]:
    if issubclass(value, enum.Enum):
        yield _doc(value)
        yield table(["member", "value"], [[code(one.name), code(str(one.value))] for one in value])
    else:
        if value.__name__ not in MADE and not is_typeddict(value):
            yield fence(_definition(name, value, keyword="class"))
        yield _doc(value)
        yield from _fields(value)
    for member, found in _members(value):
        if isinstance(found, property):
            yield f"**{code(f'.{member}')}** · {_first_line(found)}"
        elif inspect.isfunction(found):
            yield fence(_definition(member, found))
            yield _doc(found)


def _fields(value: type) -> Iterator[str]:
    """A table of the fields, for classes whose signature is not enough."""
    found = fields(value)
    if not found or not (value.__name__ in MADE or any(one.meaning for one in found)):
        return
    rows = [
        [
            code(one.name),
            code(one.kind) if one.kind else "",
            code(one.default) if one.default not in {"", "None"} else "",
            cell(one.meaning),
        ]
        for one in found
    ]
    yield table(["field", "type", "default", "meaning"], rows)


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Our public methods and properties, in the order of the source."""
    seen = set()
    for owner in value.__mro__:
        if not owner.__module__.startswith("trunkline"):
            continue
        for name, found in vars(owner).items():
            public = not name.startswith("_") and name not in INNER
            function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            if public and name not in seen and inspect.getdoc(function):
                seen.add(name)
                yield name, function


def _definition(name: str, value: Any, *, keyword: str = "def") -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:
        return f"{keyword} {name}"
    start = f"{'async ' if inspect.iscoroutinefunction(value) else ''}{keyword} {name}("
    parameters = list(_parameters(signature))
    end = ")"
    if keyword == "def" and signature.return_annotation is not inspect.Signature.empty:
        end += f" -> {_annotation(signature.return_annotation)}"
    line = start + ", ".join(parameters) + end
    if len(line) <= _WIDTH:
        return line
    return "\n".join([start, *(f"    {one}," for one in parameters), end])


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """The parameters as in the source, with the bare `*` before keyword-only ones."""
    starred = False
    for one in signature.parameters.values():
        if one.name in {"self", "cls"}:
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in {one.KEYWORD_ONLY, one.VAR_POSITIONAL}
        text = _STARS.get(one.kind, "") + one.name
        if one.annotation is not one.empty:
            text += f": {_annotation(one.annotation)}"
        if one.default is not one.empty:
            text += f" = {_default(one.default)}"
        yield text


def _annotation(value: Any) -> str:
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    # The asynchronous handle is the exported one.
    return _QUALIFIER.sub("", text).replace("AsyncJobHandle", "JobHandle")


def _default(value: Any) -> str:
    # A sentinel or a factory has no meaningful text.
    text = repr(value)
    return "…" if text.startswith("<") else text


def _doc(value: Any) -> str:
    return (inspect.getdoc(value) or "").replace("``", "`")


def _first_line(value: Any) -> str:
    return cell(_doc(value).partition("\n\n")[0])
