"""``trunkline completion``: what makes a shell complete our commands."""

from __future__ import annotations

import click

from trunkline.cli import options

__all__ = ["completion"]


@click.command(
    epilog=options.examples(
        "source <(trunkline completion bash)                        # in ~/.bashrc",
        "source <(trunkline completion zsh)                         # in ~/.zshrc",
        "trunkline completion fish > ~/.config/fish/completions/trunkline.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print the script that makes a shell complete trunkline; bash from version 4.4 on."""
    from click.shell_completion import BashComplete, get_completion_class  # noqa: PLC0415

    from trunkline.cli.main import cli  # noqa: PLC0415 - it imports this module by name

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has all three
    made = kind(cli, {}, "trunkline", "_TRUNKLINE_COMPLETE")
    # Not BashComplete.source(), which starts a bash to look at its version and may print about it.
    text = made.source_template % made.source_vars() if kind is BashComplete else made.source()
    click.echo(text)
