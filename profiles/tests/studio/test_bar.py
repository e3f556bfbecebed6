"""The bar of the demonstration reports what it sees."""

from dataclasses import replace

import pytest

from trunkline_profiles.studio.account import Account, lines
from trunkline_profiles.studio.bar import Bar


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
    assert lines[1] == f"[#{'.' * 15}]  10 %   3/16  Writing Hunger"
    assert lines[2] is None
    assert bar.falls == 0


def test_every_line_fits_a_terminal_of_80_columns() -> None:
    """With the time before it: `123.4 s  `."""
    longest = max(
        (
            *("Waiting for a worker", "Computing the charts of both people"),
            *("Combining all documents", "Recording Thresholds", "16 documents are ready"),
        ),
        key=len,
    )
    line = Bar().see({**progress(100, "complete"), "docsComplete": 16, "message": longest})
    assert line is not None
    assert len(f"{123.4:5.1f} s  {line}") <= 80
    name = "t-ab67621e-f0bc-4fe5-bfa3-54b48187d506/audio/01a1f5aa-1-3ffc5dc7-chapter3.mp3"
    account = replace(
        good(), documents=16, tasks=48, completed=48, artifacts=66, files=66, unpublished=name
    )
    assert max(map(len, lines(account))) <= 80
    assert any(line.endswith("chapter3.mp3, removed") for line in lines(account))


@pytest.mark.parametrize("later", [(5, "text"), (10, "calculating"), (12, "calculating")])
def test_a_bar_that_goes_back_is_printed_and_counted(later: tuple[int, str]) -> None:
    """TA-40: a lower percentage, and an earlier phase with a higher one."""
    bar = Bar()
    bar.see(progress(10, "text"))
    line = bar.see(progress(*later))
    assert line is not None
    assert line.endswith("WENT BACK from 10 %")
    assert bar.falls == 1


def good() -> Account:
    return Account(
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


def test_a_demonstration_with_a_bar_that_went_back_does_not_balance() -> None:
    """TA-40."""
    assert good().balanced
    assert not replace(good(), falls=1).balanced
