"""The server goes away and comes back; the worker stays."""

import signal
import time
from collections.abc import Sequence

import psycopg
import pytest

from tests.chaos.private_server import PrivateServer
from tests.chaos.scene import RETURN, Scene
from tests.support.waiting import until
from tests.support.worker_process import WorkerProcess
from trunkline import Trunkline
from trunkline.errors import TooManyConnections

STREAM = 150


def connections_of(scene: Scene) -> int:
    """Count the worker's connections; the ledger's are a superuser's."""
    found: int = scene.value(
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and usename = 'trunkline_installer'"
    )
    return found


def terminate_connections(scene: Scene, *, but: Sequence[psycopg.Connection] = ()) -> None:
    """Kill every server process of the worker, sparing the given connections."""
    scene.superuser.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where "
        "datname = current_database() and usename = 'trunkline_installer' and pid <> all(%s)",
        ([connection.info.backend_pid for connection in but],),
    )


def require_resumed(
    scene: Scene, worker: WorkerProcess, since: float, within: float = RETURN
) -> float:
    """A new job is run by the same process soon after the return; tell how soon."""
    new = scene.enqueue("quick")
    scene.until_all("completed", new)
    taken = time.monotonic() - since
    assert taken <= within, f"work went on after {taken:.1f} s, not within {within}"
    worker.require_alive()
    assert {run.pid for run in scene.runs(*new)} == {worker.pid}
    return taken


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL], ids=["fast", "immediate", "kill"]
)
def test_work_goes_on_after_a_restart(
    private_server: PrivateServer, private_scene: Scene, number: signal.Signals
) -> None:
    scene = private_scene
    worker = scene.start("--concurrency", "4")
    done = scene.enqueue("quick", STREAM)
    posted = scene.enqueue("posted", 20)
    held = scene.enqueue("lingers", 2, gate="away")
    scene.until(lambda: [run.finished for run in scene.runs(*held)] == [True] * 2, "work is done")
    private_server.stop(number)
    # These end while the server is away.
    scene.open("away")
    until(lambda: worker.says("worker.completer"), "the worker has tried to report")
    private_server.start()
    back = time.monotonic()
    require_resumed(scene, worker, back)
    scene.until_all("completed")
    scene.require_balance()
    # The worker reports such an end again; the job does not run again.
    assert {scene.job(job).attempt for job in held} == {1}
    assert len(done) + len(posted) + len(held) < len(scene.jobs)


def test_a_worker_without_a_server_reports_that_and_ends(
    private_server: PrivateServer, private_scene: Scene
) -> None:
    """A wrong address is reported at once. A supervisor starts the worker again."""
    private_server.stop()
    worker = private_scene.launch()
    assert worker.until_ended() == 1
    assert worker.says("Code: database_unreachable")
    assert worker.says("Hint:", "TRUNKLINE_DSN")


def test_supervised_processes_wait_for_a_server_that_starts_later(
    private_server: PrivateServer, private_scene: Scene
) -> None:
    scene = private_scene
    jobs = scene.enqueue("quick", 3)
    private_server.stop()
    worker = scene.launch("--processes", "2")
    scene.until(lambda: worker.says("database_unreachable"), "the worker says what it waits for")
    private_server.start()
    scene.until_all("completed", jobs)
    worker.require_alive()
    scene.require_balance()
    assert scene.states(scene.jobs) == {"completed": len(scene.jobs)}


def test_killed_connections_are_replaced(scene: Scene) -> None:
    worker = scene.start("--concurrency", "4")
    held = scene.enqueue("gated", 2, gate="meanwhile")
    scene.until_running(held)
    for _ in range(5):
        scene.enqueue("quick", STREAM)
        posted = scene.enqueue("posted", 10)
        scene.until(lambda: connections_of(scene) > 0, "the worker is connected")
        terminate_connections(scene)
        since = time.monotonic()
        require_resumed(scene, worker, since)
        scene.until_all("completed", posted)
    scene.open("meanwhile")
    scene.until_all("completed")
    assert {scene.job(job).attempt for job in held} == {1}
    scene.require_balance()


def test_a_lost_listener_listens_again(scene: Scene) -> None:
    worker = scene.start()
    first = scene.until(lambda: listener_of(scene), "the worker listens")
    scene.superuser.execute("select pg_terminate_backend(%s)", (first,))
    require_resumed(scene, worker, time.monotonic())
    scene.until(lambda: listener_of(scene) not in {None, first}, "the worker listens again")
    require_resumed(scene, worker, time.monotonic())
    scene.require_balance()
    assert listener_of(scene) not in {None, first}


def listener_of(scene: Scene) -> int | None:
    """The server process in which the worker listens."""
    found: int | None = scene.value(
        "select min(pid) from pg_stat_activity where datname = current_database() "
        "and usename = 'trunkline_installer' and query ~* '^(listen|notify) '"
    )
    return found


def test_a_full_server_is_waited_for_and_named(private_scene: Scene) -> None:
    """max_connections reached: the worker waits and comes back, a client is told why."""
    scene = private_scene
    worker = scene.start("--concurrency", "2")
    held = scene.enqueue("gated", 2, gate="meanwhile")
    scene.until_running(held)
    crowd: list[psycopg.Connection] = []
    try:
        _crowd(scene, crowd)
        scene.until(lambda: worker.says("too_many_connections"), "the worker says what is wrong")
        _require_refused(scene)
        scene.open("meanwhile")
    finally:
        for connection in crowd:
            connection.close()
    back = time.monotonic()
    require_resumed(scene, worker, back)
    scene.until_all("completed")
    scene.require_balance()
    assert scene.states(scene.jobs) == {"completed": len(scene.jobs)}


def _crowd(scene: Scene, crowd: list[psycopg.Connection]) -> None:
    """Take every connection of the server, the worker's too."""
    while connections_of(scene) > len(crowd) or not crowd:
        terminate_connections(scene, but=crowd)
        try:
            while True:
                crowd.append(psycopg.connect(scene.database.dsn, autocommit=True))
        except psycopg.OperationalError as error:
            assert "slots" in str(error) or "too many clients" in str(error)  # noqa: PT017


def _require_refused(scene: Scene) -> None:
    """A producer is told at once what is wrong and what to do."""
    with (
        Trunkline(scene.database.dsn).sync as client,
        pytest.raises(TooManyConnections) as caught,
    ):
        client.jobs.enqueue("quick", {})
    assert caught.value.code == "too_many_connections"
    assert caught.value.hint
