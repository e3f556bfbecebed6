"""``trunkline events``: send events to jobs that wait for them."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import click

from trunkline.cli import options
from trunkline.cli.connection import opened
from trunkline.cli.output import clean, count, print_json

__all__ = ["events"]


@click.group()
def events() -> None:
    """Events that jobs wait for: send."""


@events.command(
    epilog=options.examples(
        'trunkline events send approved --job ID \'{"by": "ada"}\'',
        "trunkline events send paid --key order-17 --tenant acme",
        "trunkline events send paid --key order-17 --event-id 4711 --json",
    )
)
@click.argument("name", metavar="NAME")
@click.argument("payload", metavar="[JSON]", required=False)
@click.option("--job", metavar="ID", help="The job that the event is for.")
@click.option("--key", metavar="KEY", help="The key that jobs wait for.")
@click.option("--event-id", metavar="TEXT", help="Refuse the same event with another payload.")
@click.option("--tenant", metavar="NAME", help="The tenant of the key.")
@options.with_options(options.dsn, options.as_json)
def send(
    *,
    name: str,
    payload: str | None,
    job: str | None,
    key: str | None,
    event_id: str | None,
    tenant: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Send an event to a job or to a key.

    The first event of a name wins. An event that no job waits for yet is kept: with a key for 7
    days, otherwise as long as the job. JSON is the payload; null without it.
    """
    if (job is None) == (key is None):
        raise click.UsageError("Pass --job or --key.")
    document = _document(payload)
    with opened(dsn) as session:
        target: UUID | None = None if job is None else session.operator.jobs.resolve(job)
        sent = session.operator.events.send(
            name, document, job=target, key=key, event_id=event_id, tenant=tenant
        )
    if as_json:
        print_json(sent)
        return
    shown = clean(name)
    match sent.outcome:
        case "delivered":
            click.echo(f"Event {shown} delivered. {count(sent.resumed, 'job')} will continue.")
        case "stored":
            click.echo(f"Event {shown} stored. No job waits for it yet.")
        case _:
            click.echo(f"Event {shown} was already sent at {sent.sent_at:%Y-%m-%d %H:%M:%S %Z}.")


def _document(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not JSON: {error}") from error
