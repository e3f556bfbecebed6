"""``trunkline completion``: the script that lets a shell complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, get_completion_class

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
@click.pass_context
def completion(ctx: click.Context, /, *, shell: str) -> None:
    """Print the script that lets a shell complete trunkline; bash from version 4.4 on."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has all three
    complete = kind(ctx.find_root().command, {}, "trunkline", "_TRUNKLINE_COMPLETE")
    # BashComplete.source() would start a bash to read its version and might print a warning.
    click.echo(
        complete.source_template % complete.source_vars()
        if kind is BashComplete
        else complete.source()
    )
