"""``trunkline profile``: install, check and take back a profile, and see it work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from trunkline.cli.options import as_json, dsn, examples, with_options, yes
from trunkline.cli.rollout import check, step, steps, take_over

__all__ = ["profile"]

_schema = click.option(
    "--schema", metavar="NAME", help="Schema of the profile [default: the profile's own name]."
)
_name = click.argument("name", metavar="NAME")


@click.group()
def profile() -> None:
    """Ready-made sets of tasks with an outer API of their own, in a schema of their own."""


for _command in (check, step, steps, take_over):
    profile.add_command(_command)


@profile.command("list", epilog=examples("trunkline profile list"))
@as_json
def list_(*, as_json: bool) -> None:
    """Show the profiles and their phases."""
    from trunkline.cli.output import clean, print_json  # noqa: PLC0415 - see main.py
    from trunkline.profiles import registry  # noqa: PLC0415 - see main.py

    found = [_listed(name) for name in registry.names()]
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("No profiles are installed. Those of Trunkline: pip install trunkline-profiles")
    for one in found:
        if one["error"]:
            click.echo(f"{clean(one['name'])}  broken: {clean(one['error'])}")
            continue
        click.echo(f"{clean(one['name'])}  {clean(one['description'])}")
        for phase in one["phases"]:
            optional = "" if phase["core"] else " (optional)"
            click.echo(f"  {clean(phase['name'])}  {clean(phase['title'])}{optional}")


def _listed(name: str) -> dict[str, Any]:
    """Describe a profile; a broken one has its error and nothing else."""
    from trunkline.errors import ProfileError  # noqa: PLC0415 - see main.py
    from trunkline.profiles import registry  # noqa: PLC0415 - see main.py

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
@click.option("--phase", "phases", multiple=True, metavar="N", help="Also this phase; repeatable.")
@click.option("--all", "all_phases", is_flag=True, help="All phases.")
@click.option("--again", is_flag=True, help="Apply also what is in force already.")
@click.option("--dry-run", is_flag=True, help="Apply it in a transaction that is rolled back.")
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
    """Apply phases of a profile, and what they stand on; without --phase the core. Repeatable."""
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import installer  # noqa: PLC0415 - see main.py

    chosen = profiles.get(name)
    wanted: Sequence[str] = [p.name for p in chosen.phases] if all_phases else phases
    with resolve_ready(dsn) as target:
        applied = installer.install(
            target, chosen, wanted, schema=schema, again=again, dry_run=dry_run
        )
    if as_json:
        print_json({"applied": applied} | ({"dry_run": True} if dry_run else {}))
    elif applied:
        click.echo(("Would apply " if dry_run else "Applied ") + ", ".join(applied))
    else:
        click.echo("Nothing to do: all of it is in force")


@profile.command(epilog=examples("trunkline profile status executor"))
@with_options(_name, dsn, _schema, as_json)
@click.pass_context
def status(
    ctx: click.Context, *, name: str, dsn: str | None, schema: str | None, as_json: bool
) -> None:
    """Show which scripts are in force; the exit code is 1 if the core is not, or one is broken.

    A script is broken if objects that it created are gone; `trunkline profile install` repairs it.
    """
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import installer  # noqa: PLC0415 - see main.py

    chosen = profiles.get(name)
    with resolve_ready(dsn) as target:
        states = installer.status(target, chosen, schema=schema)
    core = {phase.name for phase in chosen.phases if phase.core}
    if as_json:
        print_json([asdict(one) for one in states])
    else:
        for one in states:
            lost = f"  without {', '.join(one.lost)}" if one.lost else ""
            click.echo(f"{one.state:8}  {one.phase}/{one.script}{lost}")
    sound = all(s.state == "applied" if s.phase in core else s.state != "broken" for s in states)
    ctx.exit(0 if sound else 1)


@profile.command(
    epilog=examples(
        "trunkline profile rollback executor --yes",
        "trunkline profile rollback executor --purge --yes",
    )
)
@with_options(_name, dsn, _schema, as_json, yes)
@click.option("--purge", is_flag=True, help="Also remove the profile's own tables and settings.")
@click.option("--force", is_flag=True, help="Also drop what somebody still calls.")
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
    """Take a profile back, step by step. Jobs stay, and it can be installed again."""
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import installer  # noqa: PLC0415 - see main.py

    chosen = profiles.get(name)
    if not yes:
        steps = [s.title for s in chosen.rollback if purge or not s.optional]
        click.confirm(f"This will {', '.join(steps)}. Go on?", abort=True, err=True)
    with resolve_ready(dsn) as target:
        done = installer.rollback(target, chosen, schema=schema, purge=purge, force=force)
    if as_json:
        print_json({"steps": done})
    else:
        click.echo("Done: " + ", ".join(done) if done else "It was not installed")


@profile.command(epilog=examples("trunkline profile validate executor"))
@with_options(_name, dsn, _schema, as_json)
@click.pass_context
def validate(
    ctx: click.Context, *, name: str, dsn: str | None, schema: str | None, as_json: bool
) -> None:
    """Run the validation tests, in a transaction that is rolled back; exit code 1 if one fails."""
    from trunkline.cli.output import clean, print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import registry, validation  # noqa: PLC0415 - see main.py

    chosen = registry.get(name)
    with resolve_ready(dsn) as target:
        results = validation.validate(target, chosen, schema=schema)
    if as_json:
        print_json([asdict(one) for one in results])
    else:
        for one in results:
            click.echo(f"{'passed' if one.passed else 'FAILED'}  {one.requirement}  {one.test}")
            if not one.passed:
                click.echo(f"        expected {clean(one.expected)}")
                click.echo(f"        found    {clean(one.found)}")
    ctx.exit(0 if all(one.passed for one in results) else 1)


@profile.command(
    epilog=examples(
        "trunkline profile troubleshoot executor stuck", "trunkline profile troubleshoot executor"
    )
)
@with_options(_name, dsn, _schema, as_json)
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@click.option("--sql", "show_sql", is_flag=True, help="Show the SQL of each question, too.")
def troubleshoot(
    *,
    name: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    topics: tuple[str, ...],
    show_sql: bool,
) -> None:
    """Answer the questions of a topic, or of all: what to look at when something is wrong.

    The topics are those of the profile; executor has stuck, nothing and many.
    """
    from trunkline import profiles  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles.troubleshooting import troubleshoot as ask  # noqa: PLC0415

    chosen = profiles.get(name)
    with resolve_ready(dsn) as target:
        answers = [
            (topic, answer)
            for topic in topics or chosen.topics
            for answer in ask(target, chosen, topic, schema=schema)
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
@click.option("--once", is_flag=True, help="Look once and end.")
def wake(*, name: str, dsn: str | None, schema: str | None, once: bool) -> None:
    """Keep the wake-ups going, one every 15 seconds; any number of these may run."""
    from trunkline.db.dsn import resolve_ready  # noqa: PLC0415 - see main.py
    from trunkline.profiles import registry  # noqa: PLC0415 - see main.py
    from trunkline.profiles.wake_ups import keep_waking  # noqa: PLC0415 - see main.py

    chosen = registry.get(name)
    with resolve_ready(dsn) as target:
        keep_waking(target, chosen, schema=schema, once=once, say=click.echo)


@profile.command(
    epilog=examples(
        "trunkline profile demo executor --documents 3", "trunkline profile demo clinical"
    )
)
@with_options(_name, as_json)
@click.option(
    "--documents",
    type=click.IntRange(2, 100),
    metavar="N",
    help="How many [default: as many as show what there is to see].",
)
@click.pass_context
def demo(ctx: click.Context, *, name: str, as_json: bool, documents: int | None) -> None:
    """Run the profile end to end on a server of its own, kill a worker, and print the account.

    The exit code is 0 only when the account balances: every document ended as it should, nothing
    happened twice, and no limit was exceeded.
    """
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.profiles import demos, registry  # noqa: PLC0415 - see main.py

    play = demos.demo(registry.get(name))
    account = play.run(documents or play.DOCUMENTS, say=(lambda _: None) if as_json else click.echo)
    if as_json:
        print_json(asdict(account) | {"balanced": account.balanced})
    else:
        for line in play.lines(account):
            click.echo(line)
    ctx.exit(0 if account.balanced else 1)


def _print_rows(rows: Sequence[dict[str, Any]]) -> None:
    from functools import partial  # noqa: PLC0415 - see main.py

    from trunkline.cli.tables import Column, console, table  # noqa: PLC0415 - see main.py

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
    from datetime import datetime  # noqa: PLC0415 - see main.py

    from trunkline.cli.output import clean, moment  # noqa: PLC0415 - see main.py

    value = row[title]
    if value is None:
        return ""
    return moment(value) if isinstance(value, datetime) else clean(value)
