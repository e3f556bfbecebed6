"""``trunkline bench``: a quick measure of the queue on one's own database."""

from __future__ import annotations

import click

from trunkline.cli import options

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
    help="How many jobs in bulk; a tenth of them one by one.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    metavar="N",
    help="How many jobs each claim takes.",
)
@options.with_options(options.dsn, options.as_json)
def bench(*, jobs: int, batch: int, dsn: str | None, as_json: bool) -> None:
    """Measure enqueue, bulk enqueue, claim and complete over one connection.

    It works in a queue of its own and removes what it made. Where the role may not remove rows,
    finished jobs stay until their retention is over, and it says so.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see main.py
    from trunkline.cli.measuring import measure  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py

    with opened(dsn) as session:
        if not as_json:
            click.echo(f"Measuring with {jobs:,} jobs over one connection", err=True)
        found = measure(session, jobs=jobs, batch=batch)
    if as_json:
        print_json(found)
        return
    latency = found.enqueue_ms
    click.echo(f"round trip          p50 {found.round_trip_ms['p50']:8.2f} ms")
    click.echo(
        f"enqueue one by one  {found.enqueue_per_second:10,.0f} jobs/s"
        f"   p50 {latency['p50']:.2f} ms, p99 {latency['p99']:.2f} ms"
    )
    click.echo(f"enqueue in bulk     {found.bulk_per_second:10,.0f} jobs/s")
    click.echo(
        f"claim + complete    {found.work_per_second:10,.0f} jobs/s   in batches of {found.batch}"
    )
    if found.taken_by_others:
        click.echo(f"{found.taken_by_others:,} jobs were taken by other workers", err=True)
    if not found.cleaned_up:
        click.echo(
            f"{found.jobs:,} finished jobs of queue {found.queue} stay until their retention is "
            "over: this role may not remove them",
            err=True,
        )
