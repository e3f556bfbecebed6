"""Every mistake in a declaration is refused at once, with what was wrong and what to write."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline import Backoff, Breaker, Trunkline
from trunkline.client import load
from trunkline.errors import AppNotFound, DuplicateTask, InvalidArgument, InvalidTask


@pytest.fixture
def app() -> Trunkline:
    return Trunkline("postgresql://nobody@nowhere/none")


def _work() -> None: ...


def _breaker(**wrong: Any) -> Breaker:
    return Breaker(**wrong)


_CONCURRENCY = 'Pass how many run at once: 3, or by key {"document/{document}": 1}.'
_BREAKER = "See the reference of Breaker."
_ALIASES = 'Pass a list of names: aliases=["old_name"].'
_ALIAS_ONCE = "List each old name once, without the task's present name."


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"fair": 1}, "fair of t is 1", "Pass True or False."),
        ({"limit": ""}, "A limit of t is ''", 'Pass names: limit=["openai"].'),
        ({"limit": ["a", 5]}, "A limit of t is 5", 'Pass names: limit=["openai"].'),
        (
            {"limit": ["b", "a", "b", "a", "c"]},
            "Task t names a limit twice: a, b",
            "Name each once: in limit=, or in concurrency= with its number.",
        ),
        (
            {"limit": "x", "concurrency": {"x": 1}},
            "Task t names a limit twice: x",
            "Name each once: in limit=, or in concurrency= with its number.",
        ),
        ({"concurrency": 0}, "concurrency of t is 0", _CONCURRENCY),
        ({"concurrency": True}, "concurrency of t is True", _CONCURRENCY),
        ({"concurrency": "3"}, "concurrency of t is '3'", _CONCURRENCY),
        ({"concurrency": {"a": 1, "b": 0}}, "concurrency of t is 0", _CONCURRENCY),
        (
            {"concurrency": {"": 1}},
            "A key of concurrency of t is ''",
            'Pass names with keys: concurrency={"document/{document}": 1}.',
        ),
        (
            {"concurrency": {5: 1}},
            "A key of concurrency of t is 5",
            'Pass names with keys: concurrency={"document/{document}": 1}.',
        ),
        (
            {"breaker": "yes"},
            "breaker of t is str",
            'Pass True, or Breaker(failures=10, share=0.2, window="10m", probe_after="1m").',
        ),
        *(
            (
                {"breaker": _breaker(failures=wrong)},
                f"breaker of t: failures is {wrong!r}, not 1 or more",
                _BREAKER,
            )
            for wrong in (0, True, 1.5)
        ),
        *(
            (
                {"breaker": _breaker(share=wrong)},
                f"breaker of t: share is {wrong!r}, not between 0 and 1",
                _BREAKER,
            )
            for wrong in (-0.1, 1.1, True, "x")
        ),
        *(
            (
                {"breaker": Breaker(window=wrong)},
                f"breaker of t: window is {wrong!r}, not between a minute and a day",
                _BREAKER,
            )
            for wrong in (59, 86401)
        ),
        *(
            (
                {"breaker": Breaker(probe_after=wrong)},
                f"breaker of t: probe_after is {wrong!r}, not between a second and a day",
                _BREAKER,
            )
            for wrong in (0.9, 86401)
        ),
        (
            {"name": "a{b", "concurrency": 1},
            "The name of a{b has braces, which stand for keys in names of limits",
            "Give it another name: @app.task(name=...).",
        ),
        (
            {"name": "a}b", "breaker": True},
            "The name of a}b has braces, which stand for keys in names of limits",
            "Give it another name: @app.task(name=...).",
        ),
        (
            {"cost": {"tokens": 1}},
            "Task t has a cost but no limit",
            'Name the limit: limit="openai".',
        ),
        (
            {"cost": dict, "limit": []},
            "Task t has a cost but no limit",
            'Name the limit: limit="openai".',
        ),
        (
            {"backoff": 5},
            "backoff of t is int",
            'Pass Backoff(base="10s", factor=2, cap="10m", jitter=0.2).',
        ),
        ({"aliases": "old"}, "aliases of t is 'old'", _ALIASES),
        ({"aliases": ["a", ""]}, "aliases of t is ['a', '']", _ALIASES),
        ({"aliases": [5]}, "aliases of t is [5]", _ALIASES),
        ({"aliases": ["a", "t"]}, "aliases of t is ['a', 't']", _ALIAS_ONCE),
        ({"aliases": ["a", "b", "a"]}, "aliases of t is ['a', 'b', 'a']", _ALIAS_ONCE),
    ],
)
def test_arguments_that_make_no_sense(
    app: Trunkline, arguments: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidTask) as refused:
        app.task(**({"name": "t"} | arguments))(_work)
    assert (str(refused.value), refused.value.hint) == (message, hint)
    assert list(app.tasks) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"breaker": Breaker(failures=1, share=0, window=60, probe_after=1)},
        {"breaker": Breaker(share=1, window=86400, probe_after=86400)},
        {"concurrency": 1},
        {"concurrency": {"a": 1}},
        {"name": "a{b"},
        {"aliases": ("a", "b")},
        {"backoff": Backoff(base=0)},
    ],
)
def test_arguments_at_their_bounds(app: Trunkline, arguments: dict[str, Any]) -> None:
    app.task(**({"name": "t"} | arguments))(_work)


def test_the_order_of_limits(app: Trunkline) -> None:
    task = app.task(
        name="t",
        queue="a/b{c}%",
        limit=["openai", "x"],
        fair=True,
        concurrency={"d/{e}": 2},
        breaker=True,
    )(_work)
    fair = "fair:a%2Fb%7Bc%7D%25/{tenant}"
    assert task.policy.limits == (fair, "openai", "x", "d/{e}", "task/t")
    declared = task.policy.declares
    assert declared is not None
    assert list(declared) == [fair, "d/{e}", "task/t"]
    assert declared[fair] == {"weight": 1}
    assert declared["d/{e}"] == {"concurrency": 2}
    assert declared["task/t"] == Breaker().as_parts()
    assert task.limit == "openai"
    own = app.task(name="u", concurrency=3)(_work)
    assert own.policy.limits == ("task/u",)
    assert own.limit is None
    none = app.task(name="v", limit=[])(_work)
    assert (none.policy.limits, none.policy.declares) == ((), None)


def test_unknown_arguments_are_named_in_order(app: Trunkline) -> None:
    wrong: Any = {"zeal": 1, "colour": 2, "queue": "q"}
    with pytest.raises(InvalidTask) as refused:
        app.task(**wrong)(_work)
    assert str(refused.value) == "@app.task has no argument colour, zeal"
    assert refused.value.hint.startswith(
        "It accepts aliases, audit, backoff, breaker, concurrency,"
    )


def _generator() -> Any:
    yield 1


async def _asynchronous_generator() -> Any:
    yield 1


async def _asynchronous() -> None: ...


class _Callable:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("handler", "arguments", "message", "hint"),
    [
        (_generator, {}, "The handler of _generator is a generator", "Return a value instead."),
        (
            _asynchronous_generator,
            {},
            "The handler of _asynchronous_generator is a generator",
            "Return a value instead.",
        ),
        (
            _asynchronous,
            {"process": True},
            "The handler of _asynchronous is `async def` with process=True",
            "Use `def`: a separate process has no event loop to share.",
        ),
        (
            _Callable,
            {},
            f"{_Callable!r} is not a function",
            "Write @app.task or @app.task(queue=...) above a function.",
        ),
    ],
)
def test_what_cannot_be_a_handler(
    app: Trunkline, handler: Callable[..., Any], arguments: Any, message: str, hint: str
) -> None:
    with pytest.raises(InvalidTask) as refused:
        app.task(**arguments)(handler)
    assert (str(refused.value), refused.value.hint) == (message, hint)


def test_an_object_and_a_task_are_no_functions(app: Trunkline) -> None:
    with pytest.raises(InvalidTask, match="is not a function"):
        app.task(_Callable())
    task: Any = app.task(_work)
    with pytest.raises(InvalidTask) as refused:
        app.task(task)
    assert str(refused.value) == "<task _work> is already a task"


def test_two_tasks_of_one_name_are_refused_with_their_places(app: Trunkline) -> None:
    app.task(name="t", aliases=["old"])(_work)
    place = f"{__name__}._work (line {_work.__code__.co_firstlineno})"
    with pytest.raises(DuplicateTask) as refused:
        app.task(name="t")(_work)
    assert str(refused.value) == f"Task t is defined twice: {place} and {place}"
    for arguments in ({"name": "old"}, {"name": "u", "aliases": ["old"]}):
        with pytest.raises(DuplicateTask) as refused:
            app.task(**arguments)(_work)
        second = arguments["name"]
        assert str(refused.value) == (
            f"Two tasks have the name or alias old: t and {second}, {place} and {place}"
        )
        assert refused.value.hint == (
            "Remove it from the aliases of one of them: a job has one handler."
        )
    assert list(app.tasks) == ["t"]


@pytest.mark.parametrize("wrong", ["0", 2, "no"])
def test_the_embedded_server_is_wanted_or_not(wrong: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Trunkline(embedded=wrong)
    assert refused.value.message == "embedded is not True, False or None"
    assert refused.value.detail == {"embedded": repr(wrong)}


_APP = (
    "from trunkline import Trunkline\napp = Trunkline()\nclass N:\n  inner = Trunkline()\nx = 5\n"
)


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("", "'' does not name a module", None),
        (":app", "':app' does not name a module", None),
        ("./a/b.py:x", "./a/b.py is a file, not a module", "Name it a.b:x."),
        ("a.py", "a.py is a file, not a module", "Name it a:app."),
        ("a/b", "a/b is a file, not a module", "Name it a.b:app."),
        ("good_app:other", "Module good_app has no other", None),
        ("good_app:N.other", "Module good_app has no N.other", None),
        ("good_app:x", "good_app:x is int, not a Trunkline application", None),
        ("empty_app", "Module empty_app has no app", None),
        (
            "no_such_app",
            "There is no module no_such_app in the current folder or among the packages",
            None,
        ),
        (
            "good_app.sub",
            "There is no module good_app.sub in the current folder or among the packages",
            None,
        ),
        (
            "needy_app",
            "Module needy_app imports no_such_library, which is not installed",
            "Install the package that provides no_such_library in the environment of this command.",
        ),
        (
            "broken_app",
            "Importing broken_app failed: ValueError: bad",
            "Run `python -c 'import broken_app'` to see the whole traceback.",
        ),
        (
            "leaving_app",
            "Importing leaving_app failed: SystemExit: 3",
            "Run `python -c 'import leaving_app'` to see the whole traceback.",
        ),
    ],
)
def test_a_path_to_no_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str, hint: str | None
) -> None:
    _modules(tmp_path, monkeypatch)
    with pytest.raises(AppNotFound) as refused:
        load(path)
    assert str(refused.value) == message
    assert refused.value.hint == (AppNotFound.hint if hint is None else hint)


def _modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "good_app": _APP,
        "empty_app": "",
        "needy_app": "import no_such_library",
        "broken_app": "raise ValueError('bad')",
        "leaving_app": "raise SystemExit(3)",
    }
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])


def test_an_application_is_loaded_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _modules(tmp_path, monkeypatch)
    app = load("good_app")
    assert isinstance(app, Trunkline)
    assert load("good_app:app") is app
    assert load("good_app:N.inner") is not app
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path[0] == str(tmp_path)
