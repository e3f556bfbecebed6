"""``trunkline profile``: install, check, demonstrate and roll back a profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from trunkline.cli.options import as_json, dsn, examples, with_options, yes
from trunkline.cli.output import clean, moment, print_json
from trunkline.cli.rollout import check, step, steps, take_over
from trunkline.cli.tables import Column, console, table
from trunkline.db.dsn import resolve_ready
from trunkline.errors import ProfileError
from trunkline.profiles import demos, installer, registry, validation
from trunkline.profiles.troubleshooting import troubleshoot as answer_questions
from trunkline.profiles.wake_ups import keep_waking

__all__ = ["profile"]

_schema = click.option(
    "--schema", metavar="NAME", help="Schema of the profile [default: the profile's own name]."
)
_name = click.argument("name", metavar="NAME")


@click.group()
def profile() -> None:
    """Profiles: complete systems with their own schema and functions, as packages."""


for _command in (check, step, steps, take_over):
    profile.add_command(_command)


@profile.command("list", epilog=examples("trunkline profile list"))
@as_json
def list_(*, as_json: bool) -> None:
    """Show the profiles and their phases."""
    profiles = [_facts(name) for name in registry.names()]
    if as_json:
        print_json(profiles)
        return
    if not profiles:
        click.echo(
            "No profiles are installed. To install those of Trunkline, run: "
            "pip install trunkline-profiles"
        )
    for facts in profiles:
        if facts["error"]:
            click.echo(f"{clean(facts['name'])}  broken: {clean(facts['error'])}")
            continue
        click.echo(f"{clean(facts['name'])}  {clean(facts['description'])}")
        for phase in facts["phases"]:
            optional = "" if phase["core"] else " (optional)"
            click.echo(f"  {clean(phase['name'])}  {clean(phase['title'])}{optional}")


def _facts(name: str) -> dict[str, Any]:
    """Describe a profile; a broken one has only its error."""
    facts: dict[str, Any] = dict.fromkeys(
        ("name", "distribution", "description", "schema", "phases", "error")
    )
    try:
        profile = registry.get(name)
        distribution = registry.distribution(name)
    except ProfileError as error:
        return facts | {"name": name, "phases": [], "error": str(error)}
    phases = [{"name": p.name, "title": p.title, "core": p.core} for p in profile.phases]
    return facts | {
        "name": name,
        "distribution": distribution,
        "description": profile.description,
        "schema": profile.schema,
        "phases": phases,
    }


@profile.command(
    epilog=examples(
        "trunkline profile install executor",
        "trunkline profile install executor --phase 2 --phase 3",
    )
)
@with_options(_name, dsn, _schema, as_json)
@click.option(
    "--phase", "phases", multiple=True, metavar="N", help="Also apply this phase; may be repeated."
)
@click.option("--all", "all_phases", is_flag=True, help="Apply all phases.")
@click.option("--again", is_flag=True, help="Apply again what is already applied.")
@click.option("--dry-run", is_flag=True, help="Apply it in a transaction and roll it back.")
def install(
    *,
    name: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    phases: tuple[str, ...],
    all_phases: bool,
    again: bool,
    dry_run: bool,
) -> None:
    """Apply the core of a profile, or phases and what they depend on. You can repeat it."""
    chosen = registry.get(name)
    wanted: Sequence[str] = [p.name for p in chosen.phases] if all_phases else phases
    with resolve_ready(dsn) as target:
        applied = installer.install(
            target, chosen, wanted, schema=schema, again=again, dry_run=dry_run
        )
    if as_json:
        print_json({"applied": applied} | ({"dry_run": True} if dry_run else {}))
    elif applied:
        outcome = "would be applied" if dry_run else "applied"
        click.echo(f"{', '.join(applied)} {outcome}.")
    else:
        click.echo("Nothing to do: all of it is already applied.")


@profile.command(epilog=examples("trunkline profile status executor"))
@with_options(_name, dsn, _schema, as_json)
@click.pass_context
def status(
    ctx: click.Context, *, name: str, dsn: str | None, schema: str | None, as_json: bool
) -> None:
    """Show which scripts are applied.

    The exit code is 1 if the core is not applied or a script is broken. A script is broken if
    objects that it created are missing; `trunkline profile install` repairs it.
    """
    chosen = registry.get(name)
    with resolve_ready(dsn) as target:
        states = installer.status(target, chosen, schema=schema)
    core = {phase.name for phase in chosen.phases if phase.core}
    if as_json:
        print_json([asdict(script) for script in states])
    else:
        for script in states:
            lost = f"  without {', '.join(script.lost)}" if script.lost else ""
            click.echo(f"{script.state:8}  {script.phase}/{script.script}{lost}")
    sound = all(s.state == "applied" if s.phase in core else s.state != "broken" for s in states)
    ctx.exit(0 if sound else 1)


@profile.command(
    epilog=examples(
        "trunkline profile rollback executor --yes",
        "trunkline profile rollback executor --purge --yes",
    )
)
@with_options(_name, dsn, _schema, as_json, yes)
@click.option("--purge", is_flag=True, help="Also remove the tables and settings of the profile.")
@click.option("--force", is_flag=True, help="Also drop functions that are still in use.")
def rollback(
    *,
    name: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    yes: bool,
    purge: bool,
    force: bool,
) -> None:
    """Roll a profile back, step by step. Jobs stay, and you can install it again."""
    chosen = registry.get(name)
    if not yes:
        steps = [s.title for s in chosen.rollback if purge or not s.optional]
        click.confirm(f"This will {', '.join(steps)}. Go on?", abort=True, err=True)
    with resolve_ready(dsn) as target:
        done = installer.rollback(target, chosen, schema=schema, purge=purge, force=force)
    if as_json:
        print_json({"steps": done})
    else:
        click.echo(f"Rolled back: {', '.join(done)}." if done else "The profile was not installed.")


@profile.command(epilog=examples("trunkline profile validate executor"))
@with_options(_name, dsn, _schema, as_json)
@click.pass_context
def validate(
    ctx: click.Context, *, name: str, dsn: str | None, schema: str | None, as_json: bool
) -> None:
    """Run the validation tests in a transaction and roll it back; exit code 1 if one fails."""
    chosen = registry.get(name)
    with resolve_ready(dsn) as target:
        results = validation.validate(target, chosen, schema=schema)
    if as_json:
        print_json([asdict(test) for test in results])
    else:
        for test in results:
            click.echo(f"{'passed' if test.passed else 'FAILED'}  {test.requirement}  {test.test}")
            if not test.passed:
                click.echo(f"        expected {clean(test.expected)}")
                click.echo(f"        found    {clean(test.found)}")
    ctx.exit(0 if all(test.passed for test in results) else 1)


@profile.command(
    epilog=examples(
        "trunkline profile troubleshoot executor stuck", "trunkline profile troubleshoot executor"
    )
)
@with_options(_name, dsn, _schema, as_json)
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@click.option("--sql", "show_sql", is_flag=True, help="Also show the SQL of each question.")
def troubleshoot(
    *,
    name: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    topics: tuple[str, ...],
    show_sql: bool,
) -> None:
    """Answer the questions of a topic, or of all topics, when something is wrong.

    Each profile has its own topics. A wrong one is refused with a list of them.
    """
    chosen = registry.get(name)
    with resolve_ready(dsn) as target:
        answers = [
            (topic, answer)
            for topic in topics or chosen.topics
            for answer in answer_questions(target, chosen, topic, schema=schema)
        ]
    if as_json:
        print_json(
            [{"topic": topic, "title": a.title, "rows": list(a.rows)} for topic, a in answers]
        )
        return
    for _, answer in answers:
        click.secho(answer.title, bold=True)
        if show_sql:
            click.echo(answer.sql.strip())
        _print_rows(answer.rows)


@profile.command(epilog=examples("trunkline profile wake executor", "... wake executor --once"))
@with_options(_name, dsn, _schema)
@click.option("--once", is_flag=True, help="Check once and end.")
def wake(*, name: str, dsn: str | None, schema: str | None, once: bool) -> None:
    """Send wake-ups that are due, checked every 5 seconds; several processes may do this."""
    chosen = registry.get(name)
    with resolve_ready(dsn) as target:
        keep_waking(target, chosen, schema=schema, once=once, say=click.echo)


@profile.command(
    epilog=examples(
        "trunkline profile demo executor --documents 3",
        "trunkline profile demo clinical",
        "trunkline profile demo studio --keep order",
    )
)
@with_options(_name, as_json)
@click.option(
    "--documents",
    type=click.IntRange(2, 100),
    metavar="N",
    help="Number of documents [default: as many as the demo needs].",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Copy the files that the demo makes to this folder, which must be new or empty.",
)
@click.pass_context
def demo(
    ctx: click.Context, *, name: str, as_json: bool, documents: int | None, keep: Path | None
) -> None:
    """Run the profile end to end on a temporary server, kill a worker, and print the account.

    The exit code is 0 only if the account balances: every document ended as it should, nothing was
    done twice, and no limit was exceeded.
    """
    play = demos.demo(registry.get(name))
    number = documents or play.DOCUMENTS
    say: Callable[[str], None] = (lambda _: None) if as_json else click.echo
    if keep is None:
        account = play.run(number, say=say)
    elif isinstance(play, demos.DemoWithFiles):
        account = play.run(number, say=say, keep=keep)
    else:
        raise ProfileError(
            f"The demonstration of profile {name} makes no files", hint="Leave out --keep."
        )
    if as_json:
        print_json(asdict(account) | {"balanced": account.balanced})
    else:
        for line in play.lines(account):
            click.echo(line)
        if keep is not None:
            click.echo(f"Files copied to {clean(str(keep))}.")
    ctx.exit(0 if account.balanced else 1)


def _print_rows(rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        click.echo("  none\n")
        return
    columns: list[Column[dict[str, Any]]] = [
        Column(title, partial(_cell, title)) for title in rows[0]
    ]
    out = console()
    out.print(table(columns, rows, out.width))
    click.echo()


def _cell(title: str, row: dict[str, Any]) -> str:
    value = row[title]
    if value is None:
        return ""
    return moment(value) if isinstance(value, datetime) else clean(value)
