"""Every requirement and scenario of the reclaim system is named by a test of this folder."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent

REQUIREMENTS = {f"RC-{number:02}" for number in range(1, 66)}
SCENARIOS = {f"RC-S{number:02}" for number in range(4, 11)}


def named() -> set[str]:
    found: set[str] = set()
    for path in HERE.glob("test_*.py"):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= set(re.findall(r"RC-S?\d{2}", ast.get_docstring(node) or ""))
    return found


def test_every_requirement_is_named_by_a_test() -> None:
    assert sorted((REQUIREMENTS | SCENARIOS) - named()) == []
