"""Catalogues are written in one order, and every difference is named once."""

from typing import Any

import pytest

from trunkline.schema import catalog
from trunkline.schema.difference import Difference
from trunkline.schema.verify import compare


def _named(expected: Any, actual: Any) -> list[str]:
    return [str(difference) for difference in compare(expected, actual)]


def test_a_catalogue_is_written_in_order_and_read_back() -> None:
    found: Any = {
        "view": {},
        "table": {"b": {"y": 1, "x": "t"}, "a": {}, "c": {"z": [2, 1]}},
        "grant": {"g": {}},
    }
    text = catalog.dump(found)
    assert text == (
        '{\n  "grant": {\n    "g": {}\n  },\n'
        '  "table": {\n    "a": {},\n    "b": {"x": "t", "y": 1},\n    "c": {"z": [2, 1]}\n  },\n'
        '  "view": {}\n}\n'
    )
    assert catalog.parse(text) == found


def test_each_kind_of_difference_is_named_in_order() -> None:
    expected = {
        "index": {"i.c": {}, "i.a": {"columns": "x", "unique": True}},
        "table": {"t.a": {"owner": "o"}},
    }
    actual = {
        "index": {"i.b": {}, "i.a": {"columns": "y", "partial": "p"}},
        "type": {"t.x": {}},
        "table": {"t.a": {"owner": "o"}},
    }
    assert _named(expected, actual) == [
        (
            "changed index i.a: columns is 'y', should be 'x', partial is 'p', should be not set,"
            " unique is not set, should be set"
        ),
        "extra index i.b",
        "missing index i.c",
        "extra type t.x",
    ]
    assert _named(expected, expected) == []


def test_long_attributes_are_not_printed() -> None:
    expected = {"function": {"s.f()": {"body": "1", "cost": 1}}}
    actual = {"function": {"s.f()": {"body": "2", "cost": 2}}}
    assert _named(expected, actual) == [
        "changed function s.f: body differs, cost is 2, should be 1"
    ]


@pytest.mark.parametrize("whole", ["table", "view", "type", "default partition"])
def test_parts_of_what_is_missing_or_extra_are_not_named(whole: str) -> None:
    attributes = {"shape": "x"} if whole == "view" else {}
    parts: Any = {
        kind: {"s.t.p": {}} for kind in ("column", "constraint", "trigger", "rule", "policy")
    }
    there: Any = {whole: {"s.t": attributes}, **parts, "index": {"s.t.i": {}}}
    assert sorted(_named(there, {})) == sorted(["missing index s.t.i", f"missing {whole} s.t"])
    assert sorted(_named({}, there)) == sorted(["extra index s.t.i", f"extra {whole} s.t"])
    # Of what only changed, they are.
    changed = {**there, whole: {"s.t": {**attributes, "owner": "x"}}, "column": {}}
    assert _named(there, changed) == [
        "missing column s.t.p",
        f"changed {whole} s.t: owner is 'x', should be not set",
    ]


@pytest.mark.parametrize("kind", ["table", "view", "function", "sequence"])
def test_grants_on_what_is_missing_are_not_named(kind: str) -> None:
    attributes = {"shape": "x"} if kind == "view" else {}
    name = "s.f(a integer)" if kind == "function" else "s.t"
    there: Any = {
        kind: {name: attributes},
        "grant": {
            f"select on {kind} {name} to trunkline_reader": {},
            f"select on {kind} s.other to trunkline_reader": {},
        },
    }
    short = "s.f" if kind == "function" else name
    assert _named(there, {}) == sorted(
        [
            f"missing grant select on {kind} s.other to trunkline_reader",
            f"missing {kind} {short}",
        ],
        key=lambda text: text.split()[1],
    )
    assert _named({}, there)[0].startswith("extra")
    assert len(_named({}, there)) == 3


@pytest.mark.parametrize(
    ("grant", "allowed"),
    [
        ("usage on schema trunkline to app", True),
        ("usage on schema other to app", False),
        ("create on schema trunkline to app", False),
        ("execute on function trunkline.cancel to app", True),
        ("execute on function trunkline.claim to app", False),
        ("execute on function other.cancel to app", False),
        ("select on view trunkline.jobs to app", True),
        ("select on view trunkline.workers to app", False),
        ("select on view other.jobs to app", False),
        ("select on table trunkline.jobs to app", False),
        ("execute on function trunkline.cancel to public", False),
        ("execute on function trunkline.cancel to trunkline_reader", False),
        ("nonsense", False),
    ],
)
def test_grants_of_tenants_are_no_difference(grant: str, allowed: bool) -> None:
    found = _named({}, {"grant": {grant: {}}})
    assert found == ([] if allowed else [f"extra grant {grant}"])
    # Missing, it is one all the same.
    assert _named({"grant": {grant: {}}}, {}) == [f"missing grant {grant}"]


def test_functions_are_named_shortly_unless_they_are_overloaded() -> None:
    expected: Any = {"function": {"s.f(a integer)": {}, "s.g(a integer)": {}, "s.g(a text)": {}}}
    actual: Any = {
        "function": {"s.f(a integer)": {"x": 1}, "s.g(a integer)": {"x": 1}, "s.g(a text)": {}},
        "grant": {"execute on function s.f(a integer) to public": {}},
    }
    assert _named(expected, actual) == [
        "changed function s.f: x is 1, should be not set",
        "changed function s.g(a integer): x is 1, should be not set",
        "extra grant execute on function s.f to public",
    ]


@pytest.mark.parametrize(
    ("expected", "actual", "named"),
    [
        ({"text": "1", "shape": "a"}, {"text": "2", "shape": "a"}, True),
        ({"text": "1", "shape": "a"}, {"text": "1", "shape": "b"}, False),
        ({"text": "1", "shape": "a"}, {"shape": "a"}, False),
        ({"text": "1", "shape": "a"}, {"shape": "b"}, True),
    ],
)
def test_views_are_compared_by_text_where_both_have_one(
    expected: Any, actual: Any, named: bool
) -> None:
    found = _named({"view": {"v": expected}}, {"view": {"v": actual}})
    assert found == (["changed view v: query differs"] if named else [])


def test_a_difference_is_read_as_a_sentence() -> None:
    assert str(Difference("missing", "table", "t")) == "missing table t"
    assert str(Difference("changed", "table", "t", "x differs")) == "changed table t: x differs"


def test_nothing_that_is_null_false_or_empty_is_kept() -> None:
    kept = catalog._without_empty(  # noqa: SLF001
        {"a": None, "b": False, "c": "", "e": "x", "f": True, "g": [], "h": 7}
    )
    assert kept == {"e": "x", "f": True, "g": [], "h": 7}
    spelled = catalog._spelled(  # noqa: SLF001
        {"a": {"x": "b", "y": ["c", ["d"]], "z": 1, "w": True}}, str.upper
    )
    assert spelled == {"A": {"x": "B", "y": ["C", ["D"]], "z": 1, "w": True}}
