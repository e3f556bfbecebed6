"""``trunkline profile check|steps|step|take-over``: the roll-out of a profile, on record."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from trunkline.cli.options import as_json, dsn, examples, with_options

__all__ = ["check", "step", "steps", "take_over"]

_schema = click.option(
    "--schema", metavar="NAME", help="Schema of the profile [default: the profile's own name]."
)
_name = click.argument("name", metavar="NAME")
_dry_run = click.option("--dry-run", is_flag=True, help="Only say what would happen; recorded too.")


@click.command(epilog=examples("trunkline profile check clinical"))
@with_options(_name, dsn, _schema, as_json)
@click.pass_context
def check(
    ctx: click.Context, *, name: str, dsn: str | None, schema: str | None, as_json: bool
) -> None:
    """Go through the checklist before a cut-over; exit code 1 unless all of it is ticked."""
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import rollout  # noqa: PLC0415 - see main.py

    with resolve_ready(dsn) as target:
        found = rollout.check(target, profiles.get(name), schema=schema)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            ticked = "ticked" if one.outcome == "done" else "OPEN"
            click.echo(f"{ticked:7} {one.step:20} {one.title}")
            _say_problems(one.detail)
            if one.outcome is None:
                click.echo(f"        - take it with: profile step {name} checklist {one.step}")
    ctx.exit(0 if all(one.outcome == "done" for one in found) else 1)


@click.command(
    epilog=examples("trunkline profile steps clinical", "trunkline profile steps clinical rollback")
)
@with_options(_name, dsn, _schema, as_json)
@click.argument("plan", required=False)
def steps(
    *, name: str, dsn: str | None, schema: str | None, as_json: bool, plan: str | None
) -> None:
    """Show the steps of a plan, or of all, and what came of each."""
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import moment, print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import rollout  # noqa: PLC0415 - see main.py

    with resolve_ready(dsn) as target:
        found = rollout.steps(target, profiles.get(name), plan, schema=schema)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        when = f"{one.outcome} {moment(one.last_at)}" if one.outcome and one.last_at else "-"
        click.echo(f"{one.plan:10} {one.at:5} {one.step:20} {when:35} {one.title}")


@click.command(
    epilog=examples(
        "trunkline profile step clinical cutover maintenance_on --dry-run",
        "trunkline profile step clinical cutover functions_healthy --health https://…/health",
        "trunkline profile step clinical checklist worker --evidence 'seen on host a and b'",
    )
)
@with_options(_name, dsn, _schema, as_json)
@click.argument("plan", type=click.Choice(["checklist", "cutover", "rollback"]))
@click.argument("step_name", metavar="STEP")
@_dry_run
@click.option("--evidence", metavar="TEXT", help="How it was seen, for what no query can see.")
@click.option("--health", "urls", multiple=True, metavar="URL", help="Must answer 200; repeatable.")
@click.pass_context
def step(
    ctx: click.Context,
    *,
    name: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    plan: str,
    step_name: str,
    dry_run: bool,
    evidence: str | None,
    urls: tuple[str, ...],
) -> None:
    """Take one step of the checklist, the cut-over or the roll-back; exit code 1 if refused."""
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import clean, print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import rollout  # noqa: PLC0415 - see main.py

    chosen = profiles.get(name)
    with resolve_ready(dsn) as target:
        result = rollout.run(
            target,
            chosen,
            plan,
            step_name,
            dry_run=dry_run,
            evidence=evidence or (f"asked {', '.join(urls)}" if urls else None),
            problems=rollout.ask_health(urls),
            schema=schema,
        )
    if as_json:
        print_json(asdict(result))
    else:
        click.echo(f"{plan} {step_name}: {result.outcome.replace('_', ' ')}")
        for fact, value in result.detail.items():
            if fact != "problems":
                click.echo(f"        {clean(fact)}: {clean(value)}")
        _say_problems(result.detail)
    ctx.exit(1 if result.outcome == "refused" else 0)


@click.command(
    "take-over",
    epilog=examples(
        "trunkline profile take-over clinical errors public.shell_files --dry-run",
        "trunkline profile take-over clinical jobs public.job_queue",
    ),
)
@with_options(_name, dsn, _schema, as_json)
@click.argument("what", type=click.Choice(["errors", "files", "jobs"]))
@click.argument("table", metavar="TABLE")
@_dry_run
def take_over(
    *,
    name: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    what: str,
    table: str,
    dry_run: bool,
) -> None:
    """Take errors, files or jobs of an older table over. Repeatable: what was taken stays."""
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import rollout  # noqa: PLC0415 - see main.py

    chosen = profiles.get(name)
    with resolve_ready(dsn) as target:
        found = rollout.take_over(target, chosen, what, table, dry_run=dry_run, schema=schema)
    if as_json:
        print_json(found | {"dry_run": dry_run})
        return
    facts = ", ".join(f"{fact} {value}" for fact, value in found.items())
    click.echo(f"{'Would take' if dry_run else 'Took'} {what} of {table} over: {facts}")


def _say_problems(detail: dict[str, Any] | None) -> None:
    from trunkline.cli.output import clean  # noqa: PLC0415 - see main.py

    for problem in (detail or {}).get("problems", ()):
        click.echo(f"        - {clean(problem)}")
