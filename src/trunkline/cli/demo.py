"""``trunkline demo``: the product at work in a quarter of a minute."""

import json

import click

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
    """Two workers, a producer, a worker killed on the way, and the books at the end.

    Everything runs on a PostgreSQL server in a temporary folder that is gone afterwards. A producer
    enqueues jobs in transactions with orders of its own: fast ones, slow ones with progress, ones
    that fail a few times, and poison. One worker is killed with SIGKILL in the middle of it. Exit
    code 0 says that the books balance: every job ended, none was lost, none was done twice.

    \b
    Examples:
      trunkline demo
      trunkline demo --json --seconds 15
    """
    # rich and the driver are slow to import; `trunkline --help` imports this module's group only.
    from trunkline.demo import play  # noqa: PLC0415

    if as_json:
        account = play(seconds, lambda _scene: None)
        click.echo(json.dumps(account.as_json()))
    else:
        from rich.console import Console  # noqa: PLC0415

        from trunkline.demo.screen import live_screen, print_account  # noqa: PLC0415

        console = Console()
        with live_screen(console) as show:
            account = play(seconds, show)
        print_account(console, account)
        click.echo(
            "To see a complete system built on it, run: trunkline profile demo NAME"
            " (`trunkline profile list` shows the names)."
        )
    ctx.exit(0 if account.balances else 1)
