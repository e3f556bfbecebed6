"""The worker's own clock jumps. Time belongs to the server; the worker only measures spans."""

from pathlib import Path

import pytest

from tests.chaos.scene import Scene
from tests.support.waiting import until
from tests.support.worker_process import WorkerProcess

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


class Clock:
    """The wall clock of a worker process, moved by a file; spans of time stay true."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.move("+0")

    def move(self, shift: str) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{shift}\n", encoding="ascii")
        new.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        if not LIBRARIES:
            pytest.fail("libfaketime is missing: run tools/system_packages.sh")
        return {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }


@pytest.mark.slow
@pytest.mark.parametrize("shift", ["+1d", "-1d"])
def test_a_clock_that_jumps_by_a_day_changes_nothing(
    scene: Scene, tmp_path: Path, shift: str
) -> None:
    clock = Clock(tmp_path / "clock")
    worker = scene.start("--concurrency", "4", environment=clock.environment)
    held = scene.enqueue("gated", 2, gate="later")
    later = scene.enqueue("tells_time")
    scene.until_all("completed", later)
    assert abs(_skew(scene, later[0])) < 3600
    clock.move(shift)
    told = scene.enqueue("tells_time")
    scene.until_all("completed", told)
    assert abs(abs(_skew(scene, told[0])) - 86400) < 3600, "the clock did not jump"
    _require_pulses(scene, worker)
    retried = scene.enqueue("fails_once", 3)
    snoozed = scene.enqueue("naps", 3)
    scene.until_all("completed", [*retried, *snoozed])
    clock.move("+0")
    _require_pulses(scene, worker)
    scene.open("later")
    scene.until_all("completed")
    assert scene.lost(*scene.jobs) == []
    assert {scene.job(job).failures for job in held} == {0}
    scene.require_balance()


def _skew(scene: Scene, job: object) -> float:
    """By how many seconds the worker's clock differs from the server's."""
    found: float = scene.value(
        "select extract(epoch from ((result #>> '{}')::timestamptz - finished_at))::float "
        "from trunkline.job(%s)",
        job,
    )
    return found


def _require_pulses(scene: Scene, worker: WorkerProcess) -> None:
    """Pulses and heartbeats go on for longer than two pulses and a lease take."""

    def span() -> float:
        found: float = scene.value(
            "select extract(epoch from seen_at)::float from trunkline.workers where pid = %s",
            worker.pid,
        )
        return found

    began = span()
    until(lambda: span() > began + 4, "the worker's pulse goes on")
    assert scene.value("select alive from trunkline.workers where pid = %s", worker.pid)
