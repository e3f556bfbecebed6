"""The drawn tree of exceptions is the real one, and every SQLSTATE finds its class."""

import json
import pickle
import re

import pytest

from trunkline import errors
from trunkline.errors import SQLSTATES, Refusal, TrunklineError, UnknownTask, from_sqlstate


def classes(root: type[TrunklineError]) -> set[type[TrunklineError]]:
    return {root}.union(*(classes(child) for child in root.__subclasses__()))


# The demo is an application: its own error is not part of the tree, and loaded only by some tests.
OURS = {
    found
    for found in classes(TrunklineError)
    if found.__module__.startswith("trunkline.")
    and not found.__module__.startswith("trunkline.demo.")
}


def drawn() -> dict[str, tuple[str, str]]:
    """Each class of the tree with the one it hangs under, and the code beside it."""
    parents: dict[int, str] = {}
    found = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"(?P<stem>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: {2,}(?P<code>TL\d{3}))?", line)
        if match and (match["stem"] or match["name"] == "TrunklineError"):
            depth = len(match["stem"]) // 4
            parents[depth] = match["name"]
            found[match["name"]] = (parents.get(depth - 1, ""), match["code"] or "")
    return found


def test_the_drawn_tree_is_true() -> None:
    real = {}
    for found in OURS:
        code = found.sqlstate if issubclass(found, Refusal) else ""
        real[found.__name__] = (found.__bases__[0].__name__.replace("Exception", ""), code)
    assert drawn() == real


def test_every_exception_is_exported() -> None:
    assert {found.__name__ for found in OURS} <= set(errors.__all__)


def test_codes_are_the_names_of_the_classes() -> None:
    for found in OURS:
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", found.__name__).lower()
        assert found.code == snake


def test_every_refusal_with_a_code_is_in_the_table() -> None:
    with_code = {found for found in OURS if issubclass(found, Refusal) and found.sqlstate}
    assert set(SQLSTATES.values()) == with_code
    # Class TL is implementation-defined in the standard; 000 would mean no condition.
    assert all(re.fullmatch(r"TL\d{3}", code) and code != "TL000" for code in SQLSTATES)


@pytest.mark.parametrize("sqlstate", sorted(SQLSTATES))
def test_a_database_error_becomes_its_refusal(sqlstate: str) -> None:
    detail = {"code": SQLSTATES[sqlstate].code, "task": "x"}
    made = from_sqlstate(sqlstate, "no", json.dumps(detail), "do")
    assert type(made) is SQLSTATES[sqlstate]
    assert (made.message, made.detail, made.hint) == ("no", detail, "do")
    assert str(made) == "no (task x)"
    assert 400 <= made.http_status < 600


@pytest.mark.parametrize("sqlstate", ["23505", "TL999", "", None])
def test_other_errors_are_not_ours(sqlstate: str | None) -> None:
    assert from_sqlstate(sqlstate, "no", None, None) is None


@pytest.mark.parametrize("detail", [None, "", "no JSON", "[1]"])
def test_a_lost_detail_does_not_lose_the_refusal(detail: str | None) -> None:
    made = from_sqlstate("TL001", "unknown task", detail, None)
    assert isinstance(made, UnknownTask)
    assert (made.detail, str(made)) == ({}, "unknown task")


def test_long_facts_are_shortened_in_text_only() -> None:
    made = UnknownTask("unknown task", detail={"known": ["x"] * 500})
    assert len(str(made)) < 250
    assert len(made.detail["known"]) == 500


def test_refusals_travel_between_processes() -> None:
    sent = UnknownTask("unknown task", detail={"task": "x"}, hint="do")
    got = pickle.loads(pickle.dumps(sent))  # noqa: S301 - what was just made here
    assert (type(got), got.detail, got.hint, str(got)) == (
        UnknownTask,
        sent.detail,
        "do",
        str(sent),
    )
