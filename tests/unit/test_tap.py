"""The judge of pgTAP output lets nothing through."""

import pytest

from tests.support.tap import judge


@pytest.mark.parametrize(
    ("output", "problems"),
    [
        ("1..2\nok 1 - a\nok 2 - b\n", []),
        ("ok 1\nok 2\n1..2\n", []),
        ("1..1\nnot ok 1 - later # TODO not built\n", []),
        ("1..0 # SKIP nothing here\n", []),
        ("1..2\nok 1\nnot ok 2 - b\n# Failed\n", ["not ok 2 - b"]),
        ("1..3\nok 1\nok 2\n", ["planned 3, ran 2"]),
        ("1..1\nok 1\nok 2\n", ["planned 1, ran 2"]),
        ("ok 1\n", ["no plan"]),
        ("", ["no plan"]),
        ("1..1\nokay is no result\n", ["planned 1, ran 0"]),
    ],
)
def test_judge(output: str, problems: list[str]) -> None:
    assert judge(output) == problems
