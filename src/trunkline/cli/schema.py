"""``trunkline schema``: install, upgrade, verify, print and remove the schema of a database."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from trunkline import schema as tooling
from trunkline.cli import options
from trunkline.cli.options import with_options as _with
from trunkline.cli.output import count
from trunkline.db.dsn import resolve
from trunkline.profiles.verification import verify as verify_profiles
from trunkline.schema import Report

__all__ = ["schema"]

_lock_timeout = click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0.001),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop, with nothing changed, if a lock is not free within this time.",
)
_tenant_roles = click.option(
    "--tenant-role",
    "tenant_roles",
    multiple=True,
    metavar="NAME",
    help="Let this role of yours create, see and cancel the jobs of its tenant; may be repeated.",
)
_authenticators = click.option(
    "--authenticator",
    "authenticators",
    multiple=True,
    metavar="NAME",
    help="Let this login act for the callers of the HTTP API; may be repeated.",
)


@click.group()
def schema() -> None:
    """Install, upgrade and verify the schema.

    The role that runs it needs CREATEROLE and CREATE on the database, and need not be a superuser.
    """


@schema.command(
    epilog=options.examples(
        "trunkline schema install",
        "trunkline schema install --dsn postgresql://me@db.example.org/shop",
    )
)
@_with(options.dsn, _tenant_roles, _authenticators, _lock_timeout, options.as_json)
def install(
    *,
    dsn: str | None,
    tenant_roles: tuple[str, ...],
    authenticators: tuple[str, ...],
    lock_timeout: float,
    as_json: bool,
) -> None:
    """Create the schema, or upgrade an existing one. You can repeat it."""
    with resolve(dsn) as target:
        report = tooling.install(
            target,
            lock_timeout=lock_timeout,
            tenant_roles=tenant_roles,
            authenticators=authenticators,
        )
    _show(report, as_json=as_json)


@schema.command(epilog=options.examples("trunkline schema upgrade --lock-timeout 2"))
@_with(options.dsn, _tenant_roles, _authenticators, _lock_timeout, options.as_json)
def upgrade(
    *,
    dsn: str | None,
    tenant_roles: tuple[str, ...],
    authenticators: tuple[str, ...],
    lock_timeout: float,
    as_json: bool,
) -> None:
    """Upgrade an existing schema, in one transaction."""
    with resolve(dsn) as target:
        report = tooling.upgrade(
            target,
            lock_timeout=lock_timeout,
            tenant_roles=tenant_roles,
            authenticators=authenticators,
        )
    _show(report, as_json=as_json)


@schema.command(
    epilog=options.examples(
        "trunkline schema verify && echo equal", "trunkline schema verify --json"
    )
)
@_with(options.dsn, options.as_json)
@click.pass_context
def verify(ctx: click.Context, *, dsn: str | None, as_json: bool) -> None:
    """Compare a database with the shipped schema.

    It compares installed profiles too and lists each difference. The exit code is 0 if there is
    none, and 1 otherwise.
    """
    with resolve(dsn) as target:
        differences = [*tooling.verify(target), *verify_profiles(target)]
        newer = tooling.newer_than_package(target) if differences else None
    if as_json:
        click.echo(json.dumps([asdict(difference) for difference in differences]))
    elif differences:
        for difference in differences:
            click.echo(str(difference))
        click.echo(f"{count(len(differences), 'difference')} from the shipped schema.", err=True)
        click.echo(
            f"{newer}. {newer.hint}"
            if newer
            else "`trunkline schema upgrade` restores functions, views and grants, and "
            "`trunkline profile install NAME --again` those of a profile (with --phase N for "
            "further phases). Neither changes tables, indexes and policies: copy their statements "
            "from `trunkline schema sql`. Revoke memberships with `revoke ROLE from MEMBER`.",
            err=True,
        )
    else:
        click.echo("The database is equal to the shipped schema.")
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
    help="Print only what a database at version N lacks [default: print all of it].",
)
@click.option("--supabase", is_flag=True, help="Map anon, authenticated and service_role.")
@_with(_tenant_roles, _authenticators, _lock_timeout)
def sql(
    *,
    from_version: int,
    supabase: bool,
    tenant_roles: tuple[str, ...],
    authenticators: tuple[str, ...],
    lock_timeout: float,
) -> None:
    """Print the installation as SQL, without connecting.

    Run it with `psql -v ON_ERROR_STOP=1 -f FILE`, or save it among your migrations. The script is
    one transaction and refuses a database that is not at the version it starts from, so running it
    twice changes nothing.
    """
    click.echo(
        tooling.script(
            from_version=from_version,
            supabase=supabase,
            tenant_roles=tenant_roles,
            authenticators=authenticators,
            lock_timeout=lock_timeout,
        ),
        nl=False,
    )


@schema.command(epilog=options.examples("trunkline schema uninstall --keep-roles"))
@_with(options.dsn, _lock_timeout)
@click.option(
    "--keep-roles", is_flag=True, help="Keep the five roles even if no database uses them."
)
@click.option(
    "--cascade", is_flag=True, help="Also drop your own objects that depend on the schemas."
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

    It is refused, with a list, while your own views, columns or other objects depend on them, or a
    profile is installed. Roles that no other database uses are dropped too. The list lacks PL/pgSQL
    functions that call ours, because PostgreSQL records no dependency for them.
    """
    if not yes:
        click.confirm(
            "This removes the schemas trunkline and trunkline_internal and every job in them"
            + (", and your own objects that depend on them" if cascade else "")
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
    click.echo("Schemas trunkline and trunkline_internal removed.")
    for dependant in report.dropped_dependants:
        verb = "No longer works" if dependant.startswith("profile ") else "Dropped"
        click.echo(f"{verb}: {dependant}")
    if report.dropped_roles:
        click.echo(f"Roles removed: {', '.join(report.dropped_roles)}")
    for role, reason in report.kept_roles.items():
        click.echo(f"Role {role} kept: {reason}")


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        facts = {
            "before": report.before,
            "version": report.version,
            "applied": [migration.label for migration in report.applied],
            "breaking": report.breaking,
        }
        click.echo(json.dumps(facts))
        return
    # The reasons for migrations matter only to those who have the earlier tables.
    for migration in report.applied if report.before else ():
        flag = " (breaking: clients of earlier releases stop working)" if migration.breaking else ""
        click.echo(f"  {migration.label}  {migration.why}{flag}")
    applied = f"{report.objects} functions and views applied"
    if not report.applied:
        click.echo(f"Schema already at version {report.version}; {applied} again.")
    elif report.before:
        click.echo(
            f"Schema upgraded from version {report.before} to {report.version}; {applied} again."
        )
    else:
        click.echo(f"Schema installed at version {report.version}; {applied}.")
