"""The planning table: figures that were measured, and arithmetic that adds up."""

import re

import pytest

from bench.studio.planning import TIERS, Measured, capacity, rows, workers

MEASURED = Measured(
    rates={
        "text_generation": 2.0,
        "pdf_generation": 10.0,
        "audio_generation": 4.0,
        "finalize_job": 1.0,
    },
    idle_seconds=3.0,
    loaded_seconds=12.0,
)


def test_workers_follow_from_the_rate_of_tasks() -> None:
    """TA-62: 10 orders a minute are 160 texts, so 2.7 a second."""
    assert workers(MEASURED, 10) == {
        "text_generation": 2,
        "pdf_generation": 1,
        "audio_generation": 1,
        "finalize_job": 1,
    }
    assert workers(MEASURED, 60)["text_generation"] == 8
    for tier in TIERS:
        for kind, count in workers(MEASURED, tier.per_minute).items():
            tasks = tier.per_minute * (1 if kind == "finalize_job" else 16) / 60
            assert (count - 1) * MEASURED.rates[kind] < tasks <= count * MEASURED.rates[kind]


def test_the_table_shows_the_source_s_plan_next_to_the_measured_one() -> None:
    """TA-62: a row for each tier, with workers, dollars a day, and how long an order takes."""
    _, head, *table, note = rows(MEASURED)
    assert head.count("workers") == 1
    assert head.count("order takes") == 2
    found = [re.split(r"\s{2,}", line.strip()) for line in table]
    assert [line[:4] for line in found] == [
        ["10", "1", "7", "~5 min"],
        ["100", "5", "35", "~2 min"],
        ["1,000", "20", "140", "~1 min"],
        ["10,000", "50", "350", "<1 min"],
    ]
    for tier, line in zip(TIERS, found, strict=True):
        carried, *numbers = (int(word.replace(",", "")) for word in line[4:11])
        assert carried == int(capacity(MEASURED, tier.workers))
        assert numbers[:4] == list(workers(MEASURED, tier.per_minute).values())
        assert numbers[4] == sum(numbers[:4])
        assert numbers[5] == 7 * numbers[4]
        assert line[11] == "3.0 s to 12 s"
    assert "3.0 s alone" in note
    assert "12 s (median) of 6" in note


def test_a_plan_s_workers_carry_what_their_seconds_allow() -> None:
    """TA-62, D20: an order takes 8 + 1.6 + 4 + 1 seconds of workers here."""
    assert capacity(MEASURED, 1) == pytest.approx(60 / 14.6)
    assert capacity(MEASURED, 20) == pytest.approx(20 * 60 / 14.6)
