"""What @app.task makes of a function, and which functions it refuses."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trunkline import Backoff, Context, Schedule, SyncContext, Trunkline
from trunkline.client.task import tasks_by_name
from trunkline.errors import (
    DuplicateTask,
    InvalidDuration,
    InvalidTask,
    PayloadMismatch,
    TaskNotCallable,
)

if TYPE_CHECKING:
    from decimal import Decimal


@pytest.fixture
def app() -> Trunkline:
    """Nothing here connects."""
    return Trunkline("host=nowhere.invalid")


def test_a_bare_decorator_takes_the_name_of_the_function(app: Trunkline) -> None:
    @app.task
    async def send(to: str) -> int:
        """Send a mail."""
        return len(to)

    assert send.name == "send"
    assert app.tasks["send"] is send
    assert send.mode == "async"
    assert send.policy.queue == "default"
    assert send.__doc__ == "Send a mail."
    assert repr(send) == "<task send>"


def test_the_plain_function_stays_within_reach(app: Trunkline) -> None:
    @app.task
    def double(number: int) -> int:
        return 2 * number

    assert double.handler(21) == 42
    with pytest.raises(TaskNotCallable) as caught:
        double(21)  # type: ignore[operator]
    assert caught.value.code == "task_not_callable"
    assert ".handler(" in caught.value.hint


def test_every_argument_reaches_the_policy(app: Trunkline) -> None:
    @app.task(
        name="mail.send",
        queue="mail",
        lease="90s",
        hard_limit=timedelta(minutes=10),
        max_attempts=7,
        backoff=Backoff(base="1s", factor=3, cap="1m", jitter=0),
        priority=9,
        audit=True,
        unique_until="claim",
        crash_limit=2,
        reclaim_on_worker_death=False,
        lost_backoff=True,
        dead_when_deferred=True,
        profile="executor",
        limit=["api", "to/{to}"],
        cost={"tokens": 5},
        schedule=Schedule("*/5 * * * *", time_zone="Europe/Paris", payload={"to": "a"}),
    )
    def send(to: str) -> None: ...

    policy = send.policy
    assert (policy.task, policy.queue, policy.profile) == ("mail.send", "mail", "executor")
    assert (policy.lease, policy.hard_limit) == (90.0, 600.0)
    assert (policy.max_attempts, policy.priority, policy.audit) == (7, 9, True)
    assert (policy.unique_until, policy.crash_limit) == ("claim", 2)
    assert (policy.reclaim_on_worker_death, policy.lost_backoff) == (False, True)
    assert policy.dead_when_deferred is True
    assert (policy.limits, policy.cost) == (("api", "to/{to}"), {"tokens": 5})
    assert policy.backoff is not None
    assert policy.backoff.as_json() == {"base": 1.0, "factor": 3, "cap": 60.0, "jitter": 0}
    assert send.schedule is not None
    assert (send.schedule.cron, send.schedule.time_zone) == ("*/5 * * * *", "Europe/Paris")


def test_a_schedule_may_be_text(app: Trunkline) -> None:
    @app.task(schedule="@daily")
    def sweep() -> None: ...

    assert sweep.schedule == Schedule("@daily")


def test_how_a_handler_runs_follows_from_its_kind(app: Trunkline) -> None:
    async def in_loop() -> None: ...
    def in_thread() -> None: ...
    def in_process() -> None: ...

    assert app.task(in_loop).mode == "async"
    assert app.task(in_thread).mode == "thread"
    assert app.task(process=True)(in_process).mode == "process"


def test_two_tasks_of_one_name_are_refused_with_both_places(app: Trunkline) -> None:
    @app.task
    def send() -> None: ...

    with pytest.raises(DuplicateTask) as caught:

        @app.task(name="send")
        def other() -> None: ...

    assert caught.value.code == "duplicate_task"
    assert "send" in str(caught.value)
    assert "other" in str(caught.value)
    assert str(caught.value).count("line") == 2
    assert "name=" in caught.value.hint
    assert app.tasks["send"] is send


def test_a_renamed_task_is_listed_once_and_runs_jobs_of_all_its_names(app: Trunkline) -> None:
    @app.task(aliases=["resize", "shrink"], queue="images", max_attempts=2)
    def scale() -> None: ...

    assert list(app.tasks) == ["scale"]
    assert tasks_by_name(app.tasks) == {"scale": scale, "resize": scale, "shrink": scale}
    policies = {policy.task: policy for policy in scale.policies}
    assert list(policies) == ["scale", "resize", "shrink"]
    assert {policy.queue for policy in policies.values()} == {"images"}
    assert {policy.max_attempts for policy in policies.values()} == {2}
    assert [policy.alias_of for policy in policies.values()] == [None, "scale", "scale"]


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ({"aliases": ["send"]}, {"name": "send"}, "send"),
        ({"name": "send"}, {"aliases": ["other", "send"]}, "send"),
        ({"aliases": ["a", "b"]}, {"aliases": ["b", "c"]}, "b"),
    ],
)
def test_a_name_or_alias_belongs_to_one_task(
    app: Trunkline, first: dict[str, Any], second: dict[str, Any], clash: str
) -> None:
    @app.task(**first)
    def one() -> None: ...

    with pytest.raises(DuplicateTask, match=f"name or alias {clash}:") as caught:

        @app.task(**second)
        def two() -> None: ...

    assert "aliases" in caught.value.hint
    assert str(caught.value).count("line") == 2
    assert list(app.tasks) == [one.name]


@pytest.mark.parametrize("aliases", ["old", [""], [5], None, ["scale"], ["old", "old"], {"old": 1}])
def test_aliases_that_are_none_are_refused(app: Trunkline, aliases: Any) -> None:
    with pytest.raises(InvalidTask, match="aliases of scale is"):

        @app.task(aliases=aliases)
        def scale() -> None: ...


def takes_any_number(*numbers: int) -> None: ...
def takes_anything(**fields: int) -> None: ...
def positional_only(number: int, /) -> None: ...
def context_second(number: int, ctx: Context) -> None: ...
def context_of_coroutines(ctx: Context) -> None: ...
async def context_of_functions(ctx: SyncContext) -> None: ...
def unresolvable(amount: "Decimal") -> None: ...
def of_a_path(path: Path) -> None: ...
def of_a_callback(call: Callable[[], None]) -> None: ...
def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class Callback:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (takes_any_number, r"\*numbers"),
        (takes_anything, r"\*\*fields"),
        (positional_only, "positional-only"),
        (context_second, "Context but not the first"),
        (context_of_coroutines, "is a plain function and takes a Context"),
        (context_of_functions, "is `async def` and takes a SyncContext"),
        (unresolvable, "cannot be resolved"),
        (of_a_path, "Path"),
        (of_a_callback, "parameters of of_a_callback"),
        (generator, "generator"),
        (async_generator, "generator"),
        (functools.partial(generator), "not a function"),
        (Callback(), "not a function"),
        (Callback, "not a function"),
        (range, "not a function"),
        (max, "no signature"),
        ("send", "not a function"),
        (None, "not a function"),
    ],
)
def test_functions_that_cannot_be_handlers_are_refused_at_once(
    app: Trunkline, handler: Any, sentence: str
) -> None:
    with pytest.raises(InvalidTask, match=sentence) as caught:
        app.task()(handler)
    assert caught.value.code == "invalid_task"
    assert caught.value.hint
    assert not app.tasks


def test_a_task_is_decorated_once(app: Trunkline) -> None:
    @app.task
    def send() -> None: ...

    with pytest.raises(InvalidTask, match="already a task"):
        app.task(name="again")(send)  # type: ignore[call-overload]


def test_async_handlers_have_no_separate_process(app: Trunkline) -> None:
    async def send() -> None: ...

    with pytest.raises(InvalidTask, match="process=True") as caught:
        app.task(process=True)(send)
    assert "def" in caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"leese": "1m"}, InvalidTask, "has no argument leese"),
        ({"lease": "1 minute"}, InvalidDuration, "1 minute"),
        ({"hard_limit": -1}, InvalidDuration, "-1"),
        ({"backoff": {"base": 1}}, InvalidTask, "backoff of send is dict"),
        ({"backoff": Backoff(base="soon")}, InvalidDuration, "soon"),
        ({"schedule": Schedule("@daily", payload={"to": 5})}, PayloadMismatch, "to"),
        ({"cost": {"tokens": 1}}, InvalidTask, "a cost but no limit"),
        ({"schedule": "@daily"}, PayloadMismatch, "missing a required argument: 'to'"),
    ],
)
def test_arguments_that_could_not_work_are_refused_at_once(
    app: Trunkline, arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    def send(to: str) -> None: ...

    with pytest.raises(error, match=sentence):
        app.task(**arguments)(send)
    assert not app.tasks
