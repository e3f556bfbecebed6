"""``trunkline profile check|steps|step|take-over``: the recorded roll-out of a profile."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from trunkline.cli.options import as_json, dsn, examples, with_options
from trunkline.cli.output import clean, moment, print_json
from trunkline.db.dsn import resolve_ready
from trunkline.profiles import registry, rollout

__all__ = ["check", "step", "steps", "take_over"]

_schema = click.option(
    "--schema", metavar="NAME", help="Schema of the profile [default: the profile's own name]."
)
_name = click.argument("name", metavar="NAME")
_dry_run = click.option(
    "--dry-run", is_flag=True, help="Only report what would happen; this is recorded too."
)


@click.command(epilog=examples("trunkline profile check clinical"))
@with_options(_name, dsn, _schema, as_json)
@click.pass_context
def check(
    ctx: click.Context, *, name: str, dsn: str | None, schema: str | None, as_json: bool
) -> None:
    """Check every item of the checklist before a cut-over; exit code 1 unless all are ticked."""
    with resolve_ready(dsn) as target:
        items = rollout.check(target, registry.get(name), schema=schema)
    if as_json:
        print_json([asdict(item) for item in items])
    else:
        for item in items:
            ticked = "ticked" if item.outcome == "done" else "OPEN"
            click.echo(f"{ticked:7} {item.step:20} {item.title}")
            _show_problems(item.detail)
            if item.outcome is None:
                click.echo(f"        - run: trunkline profile step {name} checklist {item.step}")
    ctx.exit(0 if all(item.outcome == "done" for item in items) else 1)


@click.command(
    epilog=examples("trunkline profile steps clinical", "trunkline profile steps clinical rollback")
)
@with_options(_name, dsn, _schema, as_json)
@click.argument("plan", required=False)
def steps(
    *, name: str, dsn: str | None, schema: str | None, as_json: bool, plan: str | None
) -> None:
    """Show the steps of a plan, or of all plans, with their outcomes."""
    with resolve_ready(dsn) as target:
        recorded = rollout.steps(target, registry.get(name), plan, schema=schema)
    if as_json:
        print_json([asdict(step) for step in recorded])
        return
    for step in recorded:
        when = f"{step.outcome} {moment(step.last_at)}" if step.outcome and step.last_at else "-"
        click.echo(f"{step.plan:10} {step.at:5} {step.step:20} {when:35} {step.title}")


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
@click.option(
    "--evidence", metavar="TEXT", help="What you saw, for an item that no query can check."
)
@click.option(
    "--health",
    "urls",
    multiple=True,
    metavar="URL",
    help="Must respond with status 200; may be repeated.",
)
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
    chosen = registry.get(name)
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
        _show_problems(result.detail)
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
    """Take over errors, files or jobs of an older table. Repeat it for later rows."""
    chosen = registry.get(name)
    with resolve_ready(dsn) as target:
        taken = rollout.take_over(target, chosen, what, table, dry_run=dry_run, schema=schema)
    if as_json:
        print_json(taken | {"dry_run": dry_run})
        return
    facts = ", ".join(f"{fact} {value}" for fact, value in taken.items())
    outcome = "would be taken over" if dry_run else "taken over"
    click.echo(f"{what.capitalize()} of {table} {outcome}: {facts}.")


def _show_problems(detail: dict[str, Any] | None) -> None:
    for problem in (detail or {}).get("problems", ()):
        click.echo(f"        - {clean(problem)}")
