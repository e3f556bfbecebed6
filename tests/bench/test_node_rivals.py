"""Rivals in Node write to the same slate and take the same orders."""

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench.apps.slate import VARIABLE, WORK_VARIABLE, Slate
from bench.rivals import npm

SCRIPTS = Path(npm.__file__).parent / "node"
NODE = shutil.which("node")

needs_node = pytest.mark.skipif(NODE is None, reason="node is not on the path")


def start(code: str, slate: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    """Run code as a module that may import the scripts by name."""
    code = code.replace("'./", f"'{SCRIPTS.as_uri()}/")
    return subprocess.Popen(
        [str(NODE), "--input-type=module", "--eval", code],
        env={**os.environ, **({VARIABLE: str(slate)} if slate else {}), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], text: str = "") -> list[list[Any]]:
    """Return its last input, and get what it said on both outputs."""
    said = process.communicate(text, timeout=180)
    assert process.returncode == 0, said
    return [[json.loads(line) for line in lines.splitlines()] for lines in said]


HANDLE = "import { makeHandler } from './slate.mjs'; const handle = makeHandler();"


@needs_node
def test_notes_of_node_are_those_of_python(tmp_path: Path) -> None:
    slate = Slate.create(tmp_path / "slate", 1_000)
    slate.note(7)
    by_python = slate.starts[7]
    before = time.monotonic_ns()
    code = "for (const number of [5, 3, 4, 7, 999, 0, 3]) await handle(number)"
    finish(start(HANDLE + code, tmp_path / "slate"))
    after = time.monotonic_ns()
    noted = {number: count for number, count in enumerate(slate.counts) if count}
    assert noted == {0: 1, 3: 2, 4: 1, 5: 1, 7: 2, 999: 1}
    assert slate.unstarted == 994
    assert slate.repeated == 2
    # The first start counts, from either process, and in the order of the calls.
    assert slate.starts[7] == by_python
    times = [slate.starts[number] for number in (5, 3, 4, 999, 0)]
    assert [before, *times, after] == sorted([before, *times, after])
    assert sum(start != 0 for start in slate.starts) == 6


@needs_node
def test_a_running_handler_is_seen_and_takes_the_given_time(tmp_path: Path) -> None:
    slate = Slate.create(tmp_path / "slate", 2)
    code = "await handle(0); await handle(1); process.stdin.resume()"
    process = start(HANDLE + code, tmp_path / "slate", **{WORK_VARIABLE: "0.05"})
    give_up = time.monotonic() + 180
    # It runs until its input ends, so the records are not written at its end.
    while slate.unstarted and time.monotonic() < give_up:
        time.sleep(0.01)
    unseen = slate.unstarted
    finish(process)
    assert unseen == 0
    assert slate.starts[1] - slate.starts[0] >= 49_000_000


@needs_node
def test_two_processes_at_once_lose_no_notes(tmp_path: Path) -> None:
    slate = Slate.create(tmp_path / "slate", 60_000)
    # Adjacent numbers all over the slate, while each process writes dozens of times. Both write
    # the last number.
    code = """
    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    for (let at = 0; at < 4000; at++) {
      handle(2 * ((at * 7919) % 29999) + FIRST)
      if (at % 40 === 0) await pause(2)
    }
    await pause(200 * FIRST)
    handle(59999)
    """
    parts = [HANDLE + code.replace("FIRST", str(first)) for first in (0, 1)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda part: finish(start(part, tmp_path / "slate")), parts))
    assert Counter(slate.counts) == {0: 60_000 - 8_001, 1: 8_000, 2: 1}
    assert slate.counts[59_999] == 2
    assert sum(start != 0 for start in slate.starts) == 8_001


@needs_node
def test_a_job_that_is_not_on_the_slate_is_refused(tmp_path: Path) -> None:
    slate = Slate.create(tmp_path / "slate", 3)
    for number in ("3", "-1", "undefined"):
        process = start(f"{HANDLE} await handle({number})", tmp_path / "slate")
        _, complaints = process.communicate(timeout=180)
        assert process.returncode == 1
        assert f"no job {number} on the slate" in complaints
    assert slate.unstarted == 3


PRODUCE = """
import { serve } from './producing.mjs'
const said = (what) => process.stderr.write(JSON.stringify(what) + '\\n')
let under = 0, most = 0
await serve({
  async one(number) {
    most = Math.max(most, ++under)
    await new Promise((resolve) => setTimeout(resolve, 2))
    under--
    said([number, most])
  },
  async many(numbers) { said([numbers.length, numbers[0], numbers.at(-1)]) },
})
"""


def produce(*orders: object) -> list[list[Any]]:
    """Return the replies to orders, and the resulting calls."""
    return finish(start(PRODUCE), "".join(json.dumps(order) + "\n" for order in orders))


@needs_node
def test_a_producer_fills_by_the_thousand() -> None:
    (ready, seconds), calls = produce(("fill", 10, 2_500))
    assert ready == "ready"
    assert 0 < seconds < 30
    assert calls == [[1_000, 10, 1_009], [1_000, 1_010, 2_009], [500, 2_010, 2_509]]


@needs_node
def test_a_producer_shares_single_jobs_among_the_given_number_of_calls() -> None:
    (_, alone, together), calls = produce(("singly", 5, 20), ("singly", 50, 40, 10))
    assert calls[:20] == [[number, 1] for number in range(5, 25)]
    assert sorted(number for number, _ in calls[20:]) == list(range(50, 90))
    assert calls[-1][1] == 10
    assert 0.02 <= alone < 30
    assert 0 < together < 30


@needs_node
def test_a_producer_enqueues_at_the_given_moments() -> None:
    before = time.monotonic_ns()
    moments = [before + at * 1_000_000 for at in (900, 905, 990)]
    (_, times), calls = produce(("at", moments))
    assert [number for number, _ in calls] == [0, 1, 2]
    for moment, (begin, end) in zip(moments, times, strict=True):
        # Its timers may be a millisecond early.
        assert moment - 2_000_000 <= begin < end <= time.monotonic_ns()
