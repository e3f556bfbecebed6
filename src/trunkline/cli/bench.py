"""``trunkline bench``: a quick measurement of the queue on your own database."""

from __future__ import annotations

import click

from trunkline.cli import options
from trunkline.cli.output import count, print_json
from trunkline.db.dsn import resolve_ready
from trunkline.worker.measurement import measure

__all__ = ["bench"]


@click.command(
    epilog=options.examples(
        "trunkline bench",
        "trunkline bench --jobs 20000 --batch 500",
        "trunkline bench --dsn postgresql://me@db.example.org/shop --json",
    )
)
@click.option(
    "--jobs",
    type=click.IntRange(10, 1_000_000),
    default=5000,
    show_default=True,
    metavar="N",
    help="Jobs to enqueue in bulk; a tenth as many one by one.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    metavar="N",
    help="Jobs in each claim.",
)
@options.with_options(options.dsn, options.as_json)
def bench(*, jobs: int, batch: int, dsn: str | None, as_json: bool) -> None:
    """Measure enqueue, bulk enqueue, claim and complete over one connection.

    The jobs have their own queue and are removed afterwards. If the role may not remove rows, the
    finished jobs stay until their retention time is over, and the command reports it.
    """
    with resolve_ready(dsn) as target:
        if not as_json:
            click.echo(f"Measuring with {count(jobs, 'job')} over one connection", err=True)
        measurement = measure(target, jobs=jobs, batch=batch)
    if as_json:
        print_json(measurement)
        return
    latency = measurement.enqueue_ms
    click.echo(f"round trip          p50 {measurement.round_trip_ms['p50']:8.2f} ms")
    click.echo(
        f"enqueue one by one  {measurement.enqueue_per_second:10,.0f} jobs/s"
        f"   p50 {latency['p50']:.2f} ms, p99 {latency['p99']:.2f} ms"
    )
    click.echo(f"enqueue in bulk     {measurement.bulk_per_second:10,.0f} jobs/s")
    click.echo(
        f"claim + complete    {measurement.work_per_second:10,.0f} jobs/s"
        f"   in batches of {measurement.batch}"
    )
    if measurement.taken_by_others:
        click.echo(f"Other workers took {count(measurement.taken_by_others, 'job')}.", err=True)
    if not measurement.cleaned_up:
        click.echo(
            f"{count(measurement.jobs, 'finished job')} of queue {measurement.queue} stay until "
            "their retention time is over: this role may not remove them.",
            err=True,
        )
