"""Celery's producer, run in its own environment."""

from collections.abc import Sequence

from celery import group  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve_blocking
from bench.rivals.celery_app import noop


class _Producer:
    def one(self, number: int) -> None:
        noop.apply_async((number,))

    def many(self, numbers: Sequence[int]) -> None:
        group(noop.si(number) for number in numbers).apply_async()


if __name__ == "__main__":
    serve_blocking(_Producer())
