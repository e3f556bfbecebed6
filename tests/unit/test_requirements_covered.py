"""Every requirement that the engine has to meet is named by a test, or listed here with the reason.

A test names requirements in the first line of an SQL file, or in a docstring of a Python file.
Those of the clinical system have a test function that is named by their number.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]

_CP_TEST = re.compile(r"test_cp_(\d{2,3})_")
_ID = re.compile(r"\b(?:CP|RC|RF|TA|EX)-\d{2,3}\b")

# First and last number of each span, by the source the requirement comes from.
SPANS = {
    "CP": [(1, 106)],
    "RC": [(1, 65)],
    "RF": [(46, 59), (61, 61), (64, 72), (76, 76), (81, 81), (83, 87)],
    "TA": [(14, 27)],
    "EX": [(14, 14), (17, 17), (19, 20), (29, 36)],
}

# What later work brings; a line goes when a test names the requirement.
LATER = {
    "RF-46": "the cool-down of a dead pair: datasets and subscriptions",
    "TA-26": "upload before completion: artifacts",
}


def required() -> set[str]:
    return {
        f"{source}-{number:02}"
        for source, spans in SPANS.items()
        for first, last in spans
        for number in range(first, last + 1)
    }


def texts() -> Iterator[str]:
    """The places in which tests name what they are about."""
    for path in TESTS.rglob("*.sql"):
        yield path.read_text(encoding="utf-8").partition("\n")[0]
    for path in TESTS.rglob("test_*.py"):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""


def named() -> set[str]:
    return {found for text in texts() for found in _ID.findall(text)}


def functions() -> set[str]:
    """Requirements of the clinical system by which a test function is named."""
    return {
        f"CP-{found[1]}"
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (found := _CP_TEST.match(node.name))
    }


def test_every_requirement_of_the_clinical_system_names_a_test() -> None:
    wanted = {requirement for requirement in required() if requirement.startswith("CP-")}
    assert sorted(wanted - functions()) == []


def test_every_requirement_of_the_engine_is_named_by_a_test() -> None:
    assert sorted(required() - named() - LATER.keys()) == []


def test_what_is_put_off_is_required_and_not_tested_yet() -> None:
    assert sorted(LATER.keys() - required()) == []
    assert sorted(LATER.keys() & named()) == []
