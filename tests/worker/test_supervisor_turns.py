"""What a supervisor does about each end of a process, with processes that are made up."""

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from trunkline.errors import SchemaNewerThanClient
from trunkline.worker.options import WorkerOptions
from trunkline.worker.supervisor import Supervisor, end_with_parent

_OUTDATED = SchemaNewerThanClient.exit_code
_TOO_OLD = (
    f"ended with exit code {_OUTDATED}: this package is too old for the schema of the database"
    " (schema_newer_than_client). No successor is started; upgrade the trunkline package and start"
    " the worker again"
)


class Process:
    """A child that ends when the test says so."""

    def __init__(self, world: "World", command: list[str], pass_fds: list[int]) -> None:
        assert command[1:4] == ["-m", "trunkline.worker.supervised", str(os.getpid())]
        assert command[4] == str(pass_fds[0])
        self.pid = 4000 + len(world.born)
        self.world = world
        self.returncode: int | None = None
        self.asked: list[str] = []
        self.ends_when_asked: int | None = 0
        self.waited = False
        # Kept open past the supervisor's own copy, as a child would.
        self.pipe = os.dup(pass_fds[0])
        self.born_at = world.now
        world.born.append(self)

    def options(self) -> WorkerOptions:
        with os.fdopen(self.pipe, "rb") as pipe:
            return msgspec.json.decode(pipe.read(), type=WorkerOptions)

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: int) -> None:
        self._ask(f"signal {number}")

    def terminate(self) -> None:
        self._ask("terminate")

    def kill(self) -> None:
        self.asked.append("kill")
        self.returncode = -9
        self.waited = False

    def wait(self, timeout: float | None = None) -> int:
        self.waited = True
        if self.returncode is None:
            assert timeout is not None
            self.world.waits.append(timeout)
            self.world.now += timeout
            raise subprocess.TimeoutExpired("worker", timeout)
        return self.returncode

    def _ask(self, how: str) -> None:
        self.asked.append(how)
        self.returncode = self.ends_when_asked


class World:
    """Time, processes and signals."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.born: list[Process] = []
        self.waits: list[float] = []
        self.handlers: dict[int, Callable[[int, object], None]] = {}
        self.script: Iterator[Callable[[], None]] = iter(())
        module = "trunkline.worker.supervisor"
        monkeypatch.setattr(f"{module}.time", self)
        monkeypatch.setattr(f"{module}.subprocess.Popen", self._spawn)
        monkeypatch.setattr(f"{module}.signal.signal", self.handlers.__setitem__)
        monkeypatch.setattr(f"{module}.stop_signals", lambda: (signal.SIGTERM, signal.SIGHUP))

    def _spawn(self, command: list[str], *, pass_fds: list[int]) -> Process:
        return Process(self, command, pass_fds)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Between two looks: the next step of the story, or the signal that ends it."""
        assert seconds == 0.1
        next(self.script, self.stop)()

    def stop(self) -> None:
        self.handlers[signal.SIGTERM](signal.SIGTERM, None)

    def run(self, options: WorkerOptions, *script: Callable[[], None]) -> int:
        self.script = iter(script)
        return Supervisor(options).run()

    def end(self, number: int, code: int, *, after: float) -> Callable[[], None]:
        """The process born so many-th ends with this code at that age."""

        def happen() -> None:
            self.now = self.born[number].born_at + after
            self.born[number].returncode = code

        return happen

    def wait(self, seconds: float) -> Callable[[], None]:
        def happen() -> None:
            self.now += seconds

        return happen


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(monkeypatch)
    yield made
    for process in made.born:
        if process.pipe >= 0:
            try:
                os.close(process.pipe)
            except OSError:
                continue


def _said(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    known = ("supervisor ready", "supervisor stopped")
    return [(r.levelno, r.getMessage()) for r in caplog.records if r.getMessage() not in known]


def test_each_process_gets_the_options_through_a_pipe(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    options = WorkerOptions(app_path="a:b", processes=2, name="n", dsn="postgresql://u:p@h/d")
    assert world.run(options) == 0
    found = [process.options() for process in world.born]
    assert [(one.name, one.processes, one.dsn) for one in found] == [
        ("n-1", 1, "postgresql://u:p@h/d"),
        ("n-2", 1, "postgresql://u:p@h/d"),
    ]
    assert [process.asked for process in world.born] == [["signal 15"], ["signal 15"]]
    assert caplog.messages == ["supervisor ready", "supervisor stopped"]


def test_without_a_name_the_processes_have_none(world: World) -> None:
    world.run(WorkerOptions(processes=1))
    assert world.born[0].options().name is None


def test_a_process_that_lived_long_is_replaced_at_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    code = world.run(
        WorkerOptions(),
        world.end(0, -11, after=10.0),
        lambda: None,
        world.end(1, 75, after=3600.0),
        lambda: None,
        world.end(2, 0, after=20.0),
        lambda: None,
    )
    assert code == 0
    assert [process.born_at for process in world.born] == [1000.0, 1010.0, 4610.0, 4630.0]
    assert _said(caplog) == [
        (
            logging.WARNING,
            "process 1 ended with signal 11 after 10 s; its successor starts in 0 s",
        ),
        (
            logging.INFO,
            "process 1 ended with exit code 75 after 3600 s; its successor starts in 0 s",
        ),
        (
            logging.WARNING,
            "process 1 ended with exit code 0 after 20 s; its successor starts in 0 s",
        ),
    ]


def test_short_lives_are_replaced_ever_later(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    story: list[Callable[[], None]] = []
    for number in range(8):
        story += [world.end(number, 1, after=9.5), lambda: None, world.wait(31), lambda: None]
    assert world.run(WorkerOptions(), *story) == 0
    pauses = [text.rsplit(" ", 2)[1] for _, text in _said(caplog)]
    assert pauses == ["0", "2", "4", "8", "16", "30", "30", "30"]
    # None of them started before its time.
    for before, after, pause in zip(world.born, world.born[1:], pauses, strict=False):
        assert after.born_at - before.born_at - 9.5 >= float(pause)


def test_a_successor_waits_for_its_time(world: World) -> None:
    world.run(
        WorkerOptions(),
        world.end(0, 1, after=1.0),
        lambda: None,
        world.end(1, 1, after=1.0),
        world.wait(1.9),
        world.wait(0.2),
    )
    assert [process.born_at for process in world.born] == [1000.0, 1001.0, 1004.1]


@pytest.mark.parametrize(("code", "pause"), [(75, "0"), (1, "2")])
def test_a_long_life_forgives_short_ones_if_it_ended_well(
    world: World, caplog: pytest.LogCaptureFixture, code: int, pause: str
) -> None:
    world.run(
        WorkerOptions(),
        world.end(0, 1, after=1.0),
        lambda: None,
        world.end(1, code, after=10.0),
        lambda: None,
        world.end(2, 1, after=1.0),
        lambda: None,
    )
    assert [text.rsplit(" ", 2)[1] for _, text in _said(caplog)] == ["0", "0", pause]


def test_a_package_that_is_too_old_gets_no_successor(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    code = world.run(
        WorkerOptions(processes=2),
        world.end(0, _OUTDATED, after=100.0),
        world.wait(100.0),
        world.end(1, _OUTDATED, after=300.0),
        lambda: None,
        lambda: pytest.fail("it goes on without a process"),
    )
    assert code == _OUTDATED
    assert len(world.born) == 2
    assert [process.asked for process in world.born] == [[], []]
    expected = [(logging.ERROR, f"process {number} {_TOO_OLD}") for number in (1, 2)]
    assert _said(caplog) == expected


def test_one_that_is_too_old_decides_the_exit_code(world: World) -> None:
    assert world.run(WorkerOptions(processes=2), world.end(0, _OUTDATED, after=9.0)) == _OUTDATED
    assert len(world.born) == 2


@pytest.mark.parametrize(
    ("ends", "code"), [(0, 0), (75, 0), (-15, 0), (-2, 0), (1, 1), (-9, 1), (_OUTDATED, _OUTDATED)]
)
def test_the_exit_code_shows_whether_all_ended_well(world: World, ends: int, code: int) -> None:
    def choose() -> None:
        world.born[1].ends_when_asked = ends
        world.stop()

    assert world.run(WorkerOptions(processes=3), choose) == code


def test_a_process_that_does_not_end_is_killed_after_grace_and_patience(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def choose() -> None:
        for process in world.born:
            process.ends_when_asked = None
        world.stop()

    assert world.run(WorkerOptions(processes=2, grace=5.0), choose) == 1
    assert world.waits == [20.0, 0.0]
    assert [process.asked for process in world.born] == [["signal 15", "kill"]] * 2
    assert all(process.waited for process in world.born)
    pids = [process.pid for process in world.born]
    assert _said(caplog) == [
        (logging.ERROR, f"process {pid} did not end; killing it") for pid in pids
    ]


def test_every_signal_is_passed_on_to_those_that_live(world: World) -> None:
    def twice() -> None:
        world.born[0].ends_when_asked = None
        world.handlers[signal.SIGHUP](signal.SIGHUP, None)
        world.born[0].ends_when_asked = 0
        world.stop()

    assert world.run(WorkerOptions(processes=2), twice) == 0
    assert [process.asked for process in world.born] == [["signal 1", "signal 15"], ["signal 1"]]


def test_one_started_while_the_signal_came_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spawn(command: list[str], *, pass_fds: list[int]) -> Process:
        world.stop()
        return Process(world, command, pass_fds)

    monkeypatch.setattr("trunkline.worker.supervisor.subprocess.Popen", spawn)
    assert world.run(WorkerOptions(processes=2), lambda: None) == 0
    assert [process.asked for process in world.born] == [["terminate"]]


def test_a_process_that_died_at_once_harms_nobody_and_leaves_no_pipe(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spawn(command: list[str], *, pass_fds: list[int]) -> Process:
        process = Process(world, command, pass_fds)
        os.close(process.pipe)
        return process

    monkeypatch.setattr("trunkline.worker.supervisor.subprocess.Popen", spawn)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - by their number only
    assert world.run(WorkerOptions(processes=3)) == 0
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_a_process_checks_every_second_that_its_supervisor_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    later: list[tuple[float, Callable[[], None]]] = []
    monkeypatch.setattr("trunkline.worker.supervisor.ctypes.CDLL", lambda _: _Libc(asked))
    loop = SimpleNamespace(call_later=lambda seconds, look: later.append((seconds, look)))
    fake = SimpleNamespace(get_running_loop=lambda: loop)
    monkeypatch.setattr("trunkline.worker.supervisor.asyncio", fake)
    told: list[str] = []
    end_with_parent(os.getppid(), told.append)
    assert told == []
    assert asked == [(1, signal.SIGTERM)]
    ((seconds, look),) = later
    assert seconds == 1.0
    monkeypatch.setattr(os, "getppid", lambda: 1)
    look()
    assert told == ["the supervisor is gone"]
    assert len(later) == 1


class _Libc:
    def __init__(self, asked: list[Any]) -> None:
        self._asked = asked

    def prctl(self, option: int, value: int) -> None:
        self._asked.append((option, value))
