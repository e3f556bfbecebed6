"""``trunkline schema``: install, upgrade, verify, print and remove the schema of a database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from trunkline.cli import options
from trunkline.cli.options import with_options as _with

# Imports of the driver wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.schema import Report

__all__ = ["schema"]

_lock_timeout = click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0.001),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up, with nothing changed, when a lock is not free for so long.",
)
_tenant_roles = click.option(
    "--tenant-role",
    "tenant_roles",
    multiple=True,
    metavar="NAME",
    help="Let this role of yours see and cancel the jobs of its tenant; may be repeated.",
)


@click.group()
def schema() -> None:
    """Install, upgrade and verify the schema.

    The role that runs this needs CREATEROLE and CREATE on the database, and is no superuser.
    """


@schema.command(
    epilog=options.examples(
        "trunkline schema install",
        "trunkline schema install --dsn postgresql://me@db.example.org/shop",
    )
)
@_with(options.dsn, _tenant_roles, _lock_timeout, options.as_json)
def install(
    *, dsn: str | None, tenant_roles: tuple[str, ...], lock_timeout: float, as_json: bool
) -> None:
    """Create the schema, or bring an existing one up to date. Safe to repeat."""
    from trunkline import schema as tooling  # noqa: PLC0415 - see above
    from trunkline.db.dsn import resolve  # noqa: PLC0415 - see above

    with resolve(dsn) as target:
        report = tooling.install(target, lock_timeout=lock_timeout, tenant_roles=tenant_roles)
    _tell(report, as_json=as_json)


@schema.command(epilog=options.examples("trunkline schema upgrade --lock-timeout 2"))
@_with(options.dsn, _tenant_roles, _lock_timeout, options.as_json)
def upgrade(
    *, dsn: str | None, tenant_roles: tuple[str, ...], lock_timeout: float, as_json: bool
) -> None:
    """Bring an existing schema up to date, in one transaction."""
    from trunkline import schema as tooling  # noqa: PLC0415 - see above
    from trunkline.db.dsn import resolve  # noqa: PLC0415 - see above

    with resolve(dsn) as target:
        report = tooling.upgrade(target, lock_timeout=lock_timeout, tenant_roles=tenant_roles)
    _tell(report, as_json=as_json)


@schema.command(
    epilog=options.examples(
        "trunkline schema verify && echo equal", "trunkline schema verify --json"
    )
)
@_with(options.dsn, options.as_json)
@click.pass_context
def verify(ctx: click.Context, *, dsn: str | None, as_json: bool) -> None:
    """Compare a database with the shipped schema.

    Profiles that are installed are compared too. Each difference is named. The exit code is 0 when
    they are equal and 1 when they differ.
    """
    from dataclasses import asdict  # noqa: PLC0415 - see above

    from trunkline import schema as tooling  # noqa: PLC0415 - see above
    from trunkline.db.dsn import resolve  # noqa: PLC0415 - see above
    from trunkline.profiles.verification import verify as verify_profiles  # noqa: PLC0415

    with resolve(dsn) as target:
        differences = [*tooling.verify(target), *verify_profiles(target)]
        newer = tooling.newer_than_package(target) if differences else None
    if as_json:
        click.echo(json.dumps([asdict(difference) for difference in differences]))
    elif differences:
        for difference in differences:
            click.echo(str(difference))
        click.echo(f"{_count(len(differences), 'difference')} from the shipped schema", err=True)
        click.echo(
            f"{newer}. {newer.hint}"
            if newer
            else "`trunkline schema upgrade` brings functions, views and grants back, and "
            "`trunkline profile install NAME --again` those of a profile (with --phase N for "
            "further phases). Tables, indexes and policies it leaves alone: take their statements "
            "from `trunkline schema sql`. Memberships are revoked with `revoke ROLE from MEMBER`.",
            err=True,
        )
    else:
        click.echo("The database is equal to the shipped schema")
    ctx.exit(1 if differences else 0)


@schema.command(
    epilog=options.examples(
        "trunkline schema sql > 0001_trunkline.sql",
        "trunkline schema sql --from 1 | psql -v ON_ERROR_STOP=1",
    )
)
@click.option(
    "--from",
    "from_version",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Print only what a database at version N lacks [default: from nothing].",
)
@click.option("--supabase", is_flag=True, help="Map anon, authenticated and service_role.")
@_with(_tenant_roles, _lock_timeout)
def sql(
    *, from_version: int, supabase: bool, tenant_roles: tuple[str, ...], lock_timeout: float
) -> None:
    """Print everything as SQL, without connecting.

    It is meant for psql or a migrations folder. The script is one transaction and refuses a
    database that is not at the version it starts from, so that running it twice changes nothing:
    psql -v ON_ERROR_STOP=1 -f FILE
    """
    from trunkline import schema as tooling  # noqa: PLC0415 - see above

    click.echo(
        tooling.script(
            from_version=from_version,
            supabase=supabase,
            tenant_roles=tenant_roles,
            lock_timeout=lock_timeout,
        ),
        nl=False,
    )


@schema.command(epilog=options.examples("trunkline schema uninstall --keep-roles"))
@_with(options.dsn, _lock_timeout)
@click.option("--keep-roles", is_flag=True, help="Leave the five roles even if nobody uses them.")
@click.option(
    "--cascade", is_flag=True, help="Also drop objects of yours that depend on the schemas."
)
@_with(options.yes, options.as_json)
def uninstall(
    *,
    dsn: str | None,
    lock_timeout: float,
    keep_roles: bool,
    cascade: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove the schemas with all jobs in them.

    Refused, with a list, while views, columns or other objects of yours depend on them, or a
    profile is installed. The roles go too, where no other database uses them. The list has no
    functions in PL/pgSQL that call ours: PostgreSQL records no dependency for them.
    """
    from trunkline import schema as tooling  # noqa: PLC0415 - see above
    from trunkline.db.dsn import resolve  # noqa: PLC0415 - see above

    if not yes:
        click.confirm(
            "This removes the schemas trunkline and trunkline_internal and every job in them"
            + (", and objects of yours that depend on them" if cascade else "")
            + ". Go on?",
            abort=True,
        )
    with resolve(dsn) as target:
        report = tooling.uninstall(
            target, drop_roles=not keep_roles, cascade=cascade, lock_timeout=lock_timeout
        )
    if as_json:
        facts = {
            "dropped_dependants": report.dropped_dependants,
            "dropped_roles": report.dropped_roles,
            "kept_roles": report.kept_roles,
        }
        click.echo(json.dumps(facts))
        return
    click.echo("Removed the schemas trunkline and trunkline_internal")
    for dependant in report.dropped_dependants:
        verb = "No longer works" if dependant.startswith("profile ") else "Dropped"
        click.echo(f"{verb}: {dependant}")
    if report.dropped_roles:
        click.echo(f"Removed the roles {', '.join(report.dropped_roles)}")
    for role, reason in report.kept_roles.items():
        click.echo(f"Left the role {role}: {reason}")


def _tell(report: Report, *, as_json: bool) -> None:
    if as_json:
        facts = {
            "before": report.before,
            "version": report.version,
            "applied": [migration.label for migration in report.applied],
            "breaking": report.breaking,
        }
        click.echo(json.dumps(facts))
        return
    # Why a table was changed later tells nothing to who sees it for the first time.
    for migration in report.applied if report.before else ():
        flag = " (breaking: clients of earlier releases stop)" if migration.breaking else ""
        click.echo(f"  {migration.label}  {migration.why}{flag}")
    again = f"{report.objects} functions and views applied"
    if not report.applied:
        click.echo(f"The schema is at version {report.version} already; {again} again")
    elif report.before:
        click.echo(f"Upgraded from version {report.before} to {report.version}; {again} again")
    else:
        click.echo(f"Installed version {report.version}; {again}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
