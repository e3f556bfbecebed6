"""The processes of a toy queue: ``worker good|loses|… FOLDER`` and ``producer … FOLDER``."""

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.apps.producing import serve_blocking
from bench.apps.slate import WORK_SECONDS, open_slate

__all__ = ["numbers"]


class _Producer:
    def __init__(self, how: str, folder: Path) -> None:
        self._how = how
        self._folder = folder

    def one(self, number: int) -> None:
        self.many([number])

    def many(self, numbers: Sequence[int]) -> None:
        if self._how == "mute":
            time.sleep(600)
        with (self._folder / "jobs").open("a") as file:
            file.writelines(f"{number}\n" for number in numbers)


def _work(how: str, folder: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if how == "dies":
        sys.exit("my queue is gone")
    done = 0
    while True:
        jobs = numbers(folder, "jobs")
        for number in jobs[done:]:
            _handle(how, folder, number)
            done += 1
        time.sleep(0.002)


def _handle(how: str, folder: Path, number: int) -> None:
    if how == "hangs" and number == 5:
        time.sleep(600)
    if how != "loses" or number != 7:
        open_slate().note(number)
    if how == "repeats" and number == 3:
        open_slate().note(number)
    time.sleep(WORK_SECONDS)
    with (folder / "ends").open("a") as file:
        ends = {"writes_twice": 2, "writes_none": 0}.get(how, 1) if number == 4 else 1
        file.write(f"{number}\n" * ends)


def numbers(folder: Path, name: str) -> list[int]:
    """What a file of the queue says."""
    path = folder / name
    # The last line may be half written.
    return [int(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


if __name__ == "__main__":
    role, kind, place = sys.argv[1:]
    if role == "worker":
        _work(kind, Path(place))
    else:
        serve_blocking(_Producer(kind, Path(place)))
