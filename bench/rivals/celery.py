"""Celery with Redis: a list of messages that workers fetch and acknowledge one by one."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.celery_redis import Redis, ensure_redis, open_redis, redis_version
from bench.rivals.environment import Environment
from bench.rivals.product import Contender, Product

__all__ = ["PRODUCT"]

_ENVIRONMENT = Environment("celery", ["celery[redis]==5.7.0", "redis[hiredis]==8.1.0"])


class _Celery(Contender):
    """Keeps no ended jobs, so only the handlers' records show how often a job ran."""

    def __init__(self, redis: Redis) -> None:
        python = str(_ENVIRONMENT.python)
        super().__init__(
            key="celery",
            name="Celery",
            worker=[python, "-m", "bench.rivals.celery_worker"],
            producer=[python, "-m", "bench.rivals.celery_producer"],
            environment={"CELERY_BROKER_URL": f"redis+socket://{redis.path}"},
        )
        self._redis = redis

    def is_empty(self) -> bool:
        # Waiting messages, and those that a worker has fetched and not acknowledged.
        return self._redis.ask("llen", "celery") == self._redis.ask("hlen", "unacked") == "0"

    def ended(self) -> tuple[int, int] | None:
        return None

    def forget(self) -> None:
        self._redis.ask("flushall")

    def dead_tuples(self) -> int | None:
        return None

    def server_pids(self) -> list[int]:
        return [self._redis.pid]


@contextmanager
def _open(place: Place) -> Iterator[Contender]:  # noqa: ARG001 - it does not use PostgreSQL
    with open_redis() as redis:
        yield _Celery(redis)


def _prepare() -> None:
    ensure_redis()
    _ENVIRONMENT.make()


def _versions() -> dict[str, str]:
    return {**_ENVIRONMENT.versions("celery", "redis"), "redis-server": redis_version()}


PRODUCT = Product(
    key="celery",
    name="Celery",
    language="Python",
    settings="Redis with `appendfsync always` on a Unix socket, hiredis, late acknowledgement, no "
    "results, 10 messages a slot ahead; pool `solo` for no-op jobs, 10 threads for jobs that wait; "
    "bulk: `group`",
    prepare=_prepare,
    versions=_versions,
    open=_open,
    pace=400,
)
