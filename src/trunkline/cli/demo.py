"""``trunkline demo``: the product at work in a quarter of a minute."""

import json

import click
from rich.console import Console

from trunkline.demo import play
from trunkline.demo.screen import live_screen, print_account

__all__ = ["demo"]


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(5, 3600),
    default=15.0,
    show_default=True,
    help="About how long it runs; the last jobs may take a little longer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the account, as one JSON object.")
@click.pass_context
def demo(ctx: click.Context, *, seconds: float, as_json: bool) -> None:
    """See two workers and a producer at work, and what happens when a worker is killed.

    Everything runs on a PostgreSQL server in a temporary folder that is removed afterwards. The
    producer enqueues jobs in the transactions of its orders: quick ones, slow ones with progress,
    some that fail a few times, and some that always fail. One worker is killed with SIGKILL. The
    exit code is 0 if the account balances: every job has ended, none was lost, none was done twice.

    \b
    Examples:
      trunkline demo
      trunkline demo --json --seconds 15
    """
    if as_json:
        account = play(seconds, lambda _scene: None)
        click.echo(json.dumps(account.as_json()))
    else:
        console = Console()
        with live_screen(console) as show:
            account = play(seconds, show)
        print_account(console, account)
        click.echo(
            "To see a complete system built on it, run: trunkline profile demo NAME"
            " (`trunkline profile list` shows the names)."
        )
    ctx.exit(0 if account.balances else 1)
