"""The bar of the demonstration reports what it sees."""

from dataclasses import replace

import pytest

from trunkline_profiles.studio.bar import Bar
from trunkline_profiles.studio.demo import Account


def progress(percent: int, phase: str) -> dict[str, object]:
    return {
        "percent": percent,
        "phase": phase,
        "docsComplete": 3,
        "docsTotal": 16,
        "message": "Writing Hunger",
    }


def test_a_bar_prints_each_move_once() -> None:
    """TA-40."""
    bar = Bar()
    lines = [bar.see(progress(*one)) for one in [(5, "calculating"), (10, "text"), (10, "text")]]
    assert lines[1] == f"[####{'.' * 36}]  10 %   3/16 documents  Writing Hunger"
    assert lines[2] is None
    assert bar.falls == 0


@pytest.mark.parametrize("later", [(5, "text"), (10, "calculating"), (12, "calculating")])
def test_a_bar_that_goes_back_is_printed_and_counted(later: tuple[int, str]) -> None:
    """TA-40: a lower percentage, and an earlier phase with a higher one."""
    bar = Bar()
    bar.see(progress(10, "text"))
    line = bar.see(progress(*later))
    assert line is not None
    assert line.endswith("WENT BACK from 10 %")
    assert bar.falls == 1


def test_a_demonstration_with_a_bar_that_went_back_does_not_balance() -> None:
    """TA-40."""
    good = Account(
        documents=1,
        tasks=3,
        completed=3,
        percent=100,
        status="complete",
        artifacts=6,
        files=6,
        equal=6,
        opened=6,
        orphans=0,
        missing=0,
        killed=1,
        unpublished="x.mp3",
        unpublished_removed=True,
        reclaimed=1,
        calls=1,
        paid=1,
        falls=0,
        seconds=1.0,
    )
    assert good.balanced
    assert not replace(good, falls=1).balanced
