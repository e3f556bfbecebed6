"""``trunkline artifacts``: files of completed jobs, and what they take."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from uuid import UUID

import click

from trunkline.cli import options
from trunkline.cli.actions import change, confirm
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import amount, clean, moment, print_json, relative
from trunkline.cli.tables import Column, console, facts, put
from trunkline.model import Artifact, StorageStatus
from trunkline.operate import SyncOperator
from trunkline.telemetry import size

__all__ = ["artifacts"]

_EMPTY = "No artifacts. A handler creates one with ctx.artifact when its job completes."


@click.group()
def artifacts() -> None:
    """Artifacts: files of completed jobs. Reading a file needs the store in TRUNKLINE_STORE."""


@artifacts.command(
    "list",
    epilog=options.examples(
        "trunkline artifacts list",
        "trunkline artifacts list --job 0199d3f0-4f2a-7cc1-9d38-d6c7f0a4be11",
        "trunkline artifacts list --kind audio_mp3 --json",
    ),
)
@click.option("--job", metavar="ID", help="Only those of a job.")
@click.option("--workflow", metavar="ID", help="Only those of a workflow.")
@click.option("--kind", metavar="KIND", help="Only those of a kind.")
@click.option("--deleted", is_flag=True, help="Also deleted ones.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="How many.",
)
@click.option("--after", metavar="ID", help="Those after the last one of the page before.")
@options.with_options(options.dsn, options.as_json)
def list_(
    *,
    job: str | None,
    workflow: str | None,
    kind: str | None,
    deleted: bool,
    limit: int,
    after: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """List artifacts, oldest first."""
    list_rows(
        dsn,
        lambda operator: operator.artifacts.list(
            job=None if job is None else operator.jobs.resolve(job),
            workflow=None if workflow is None else operator.workflows.resolve(workflow),
            kind=kind,
            deleted=deleted,
            limit=limit,
            after=None if after is None else operator.artifacts.resolve_id(after),
        ),
        lambda now, _out: _columns(now),
        empty=_EMPTY,
        as_json=as_json,
    )


@artifacts.command(epilog=options.examples("trunkline artifacts show ID"))
@click.argument("artifact", metavar="ID")
@options.with_options(options.dsn, options.as_json)
def show(*, artifact: str, dsn: str | None, as_json: bool) -> None:
    """Show everything that is recorded about an artifact."""
    with opened(dsn) as session:
        found = session.operator.artifacts.get(session.operator.artifacts.resolve_id(artifact))
        now = session.operator.now()
    if as_json:
        print_json(found)
        return
    put(
        console(),
        facts(
            [
                ("artifact", found.id),
                ("name", found.name),
                ("kind", found.kind),
                ("content type", found.content_type),
                ("bytes", amount(found.bytes)),
                ("sha256", found.sha256),
                ("duration", None if found.duration is None else f"{found.duration:g} s"),
                ("job", found.job_id),
                ("workflow", found.workflow_id),
                ("task", found.task),
                ("tenant", found.tenant),
                ("attempt", found.attempt),
                ("step", found.step),
                ("path", found.storage_path),
                ("published", moment(found.published_at, now)),
                ("expires", moment(found.expires_at, now)),
                ("deleted", moment(found.deleted_at, now)),
                ("reason", found.delete_reason),
                ("missing", moment(found.missing_at, now)),
            ]
        ),
    )


@artifacts.command(
    epilog=options.examples(
        "trunkline artifacts link ID", "curl -o song.mp3 $(trunkline artifacts link ID)"
    )
)
@click.argument("artifact", metavar="ID")
@click.option(
    "--expires-in",
    type=options.DURATION,
    default="1h",
    show_default=True,
    metavar="DURATION",
    help="How long the link works.",
)
@options.with_options(options.dsn, options.as_json)
def link(*, artifact: str, expires_in: float, dsn: str | None, as_json: bool) -> None:
    """Print a link that works without signing in. Keep it secret: it is the key to the file."""
    with opened(dsn) as session:
        known = session.operator.artifacts.resolve_id(artifact)
        url = session.operator.artifacts.link(known, expires_in=int(expires_in))
    if as_json:
        print_json({"artifact": known, "link": url, "expires_in": int(expires_in)})
    else:
        click.echo(url)


@artifacts.command(
    "upload-link",
    epilog=options.examples(
        "trunkline artifacts upload-link ID --worker node-1 --job JOB --attempt 1",
        "trunkline artifacts upload-link ID --worker node-1 --job JOB --attempt 1 --json",
    ),
)
@click.argument("artifact", metavar="ID")
@click.option("--worker", metavar="ID", required=True, help="The worker that runs the job.")
@click.option("--job", metavar="ID", required=True, help="The job.")
@click.option("--attempt", metavar="N", type=click.IntRange(1), required=True, help="Its attempt.")
@click.option(
    "--expires-in",
    type=options.DURATION,
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="How long an upload may begin; an hour at most.",
)
@options.with_options(options.dsn, options.as_json)
def upload_link(
    *,
    artifact: str,
    worker: str,
    job: str,
    attempt: int,
    expires_in: float,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Print a link to upload an artifact that was begun.

    The second and third line are headers that the upload has to send. For workers in other
    languages, which record the upload with stage_artifact.
    """
    with opened(dsn) as session:
        found = session.operator.artifacts.upload_link(
            artifact, worker=worker, job=job, attempt=attempt, expires_in=int(expires_in)
        )
    if as_json:
        print_json(found)
        return
    click.echo(found.url)
    for name, value in found.headers.items():
        click.echo(f"{name}: {clean(value)}")


@artifacts.command(
    epilog=options.examples(
        "trunkline artifacts get ID",
        "trunkline artifacts get ID --output chapter1.mp3",
        "trunkline artifacts get ID --output - | mpv -",
    )
)
@click.argument("artifact", metavar="ID")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Where to write; - for standard output [default: its name].",
)
@options.with_options(options.dsn, options.as_json)
def get(*, artifact: str, output: str | None, dsn: str | None, as_json: bool) -> None:
    """Download an artifact. The hash is checked before the file appears."""
    with opened(dsn) as session:
        found = session.operator.artifacts.get(session.operator.artifacts.resolve_id(artifact))
        if output == "-":
            for chunk in session.operator.artifacts.open(found):
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            return
        target = Path(output or found.name)
        if target.exists():
            raise click.UsageError(f"{clean(target)} exists. Name another file with --output.")
        session.operator.artifacts.save(found, target)
    if as_json:
        print_json({"artifact": found.id, "file": str(target), "bytes": found.bytes})
    else:
        click.echo(f"{clean(target)} written, {size(found.bytes)}.")


@artifacts.command(
    epilog=options.examples("trunkline artifacts delete ID --reason 'wrong customer'")
)
@click.argument("artifact", metavar="ID")
@options.with_options(options.reason, options.yes, options.dsn, options.as_json)
def delete(*, artifact: str, reason: str | None, yes: bool, dsn: str | None, as_json: bool) -> None:
    """Delete an artifact. Its row stays as a tombstone for a while; a worker removes the file."""
    confirm(f"Delete the artifact {artifact}?", yes=yes)

    def delete_one(operator: SyncOperator) -> tuple[UUID, bool]:
        known = operator.artifacts.resolve_id(artifact)
        return known, operator.artifacts.delete(known, reason=reason)

    change(
        delete_one,
        lambda done: f"Artifact {done[0]} {'deleted' if done[1] else 'was deleted before'}.",
        lambda done: {"artifact": done[0], "deleted": True, "was_deleted": not done[1]},
        dsn=dsn,
        as_json=as_json,
    )


@artifacts.command(epilog=options.examples("trunkline artifacts usage"))
@options.with_options(options.dsn, options.as_json)
def usage(*, dsn: str | None, as_json: bool) -> None:
    """List what the artifacts of each tenant take, and their quotas."""
    list_rows(
        dsn,
        lambda operator: operator.artifacts.storage(),
        lambda _now, _out: _storage_columns(),
        empty=_EMPTY,
        as_json=as_json,
    )


@artifacts.command(
    epilog=options.examples(
        "trunkline artifacts quota acme 100MiB", "trunkline artifacts quota acme none"
    )
)
@click.argument("tenant", metavar="TENANT")
@click.argument("most", metavar="SIZE|none")
@options.with_options(options.reason, options.dsn, options.as_json)
def quota(*, tenant: str, most: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Limit a tenant's storage; `none` restores the setting."""
    limit = None if most == "none" else options.SIZE.convert(most, None, None)
    limited = "restored to the default" if limit is None else f"set to {size(limit)}"
    change(
        lambda operator: operator.artifacts.set_quota(tenant, limit, reason=reason),
        lambda _: f"Quota of {clean(tenant)} {limited}.",
        lambda _: {"tenant": tenant, "max_bytes": limit},
        dsn=dsn,
        as_json=as_json,
    )


@artifacts.command(
    epilog=options.examples(
        "trunkline artifacts retention audio_mp3 7d", "trunkline artifacts retention audio_mp3 none"
    )
)
@click.argument("kind", metavar="KIND")
@click.argument("length", metavar="DURATION|none")
@options.with_options(options.reason, options.dsn, options.as_json)
def retention(
    *, kind: str, length: str, reason: str | None, dsn: str | None, as_json: bool
) -> None:
    """Set how long a kind is kept; `none` restores the setting.

    It applies to new artifacts.
    """
    kept = None if length == "none" else options.DURATION.convert(length, None, None)
    text = "restored to the default" if kept is None else f"set to {clean(length)}"
    change(
        lambda operator: operator.artifacts.set_retention(kind, kept, reason=reason),
        lambda _: f"Retention of {clean(kind)} {text}. It applies to new artifacts.",
        lambda _: {"kind": kind, "retention_seconds": kept},
        dsn=dsn,
        as_json=as_json,
    )


def _columns(now: datetime) -> list[Column[Artifact]]:
    def note(row: Artifact) -> str:
        if row.deleted_at is not None:
            return "deleted"
        return "missing" if row.missing_at is not None else ""

    return [
        Column("ARTIFACT", lambda row: str(row.id)),
        Column("NAME", lambda row: row.name, elastic=True),
        Column("KIND", lambda row: row.kind, rank=2),
        Column("SIZE", lambda row: size(row.bytes), right=True, rank=1),
        Column("TENANT", lambda row: row.tenant or "", rank=4),
        Column("TASK", lambda row: row.task, rank=5),
        Column("PUBLISHED", lambda row: relative(row.published_at, now), rank=3),
        Column("", note, "red", rank=0),
    ]


def _storage_columns() -> list[Column[StorageStatus]]:
    return [
        Column("TENANT", lambda row: row.tenant or "(none)", elastic=True),
        Column("USED", lambda row: size(row.used_bytes), right=True),
        Column("FILES", lambda row: amount(row.files), right=True),
        Column("RESERVED", lambda row: size(row.reserved_bytes), right=True, rank=2),
        Column(
            "QUOTA", lambda row: "" if row.max_bytes is None else size(row.max_bytes), right=True
        ),
    ]
