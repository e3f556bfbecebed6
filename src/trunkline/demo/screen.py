"""The demo as people see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trunkline.demo.account import Account
from trunkline.demo.play import Scene

__all__ = ["live_screen", "print_account"]

_LINES = 8


@contextmanager
def live_screen(console: Console) -> Iterator[Any]:
    """Give a function that shows a scene: live in a terminal, line by line elsewhere."""
    if not console.is_terminal:
        told = 0

        def tell(scene: Scene) -> None:
            nonlocal told
            for line in scene.happened[told:]:
                console.print(f"{scene.seconds:6.1f} s  {line}")
            told = len(scene.happened)

        yield tell
        return
    with Live(console=console, refresh_per_second=10) as live:
        yield lambda scene: live.update(_drawn(scene))


def _drawn(scene: Scene) -> Group:
    jobs = Table(
        title=f"{scene.seconds:.1f} s, {scene.enqueued} jobs enqueued", expand=True, box=SIMPLE_HEAD
    )
    columns = (
        "task",
        "waiting",
        "running",
        "progress",
        "retrying",
        "completed",
        "cancelled",
        "dead",
    )
    for name in columns:
        jobs.add_column(name, justify="left" if name in {"task", "progress"} else "right")
    for one in scene.standing:
        bar: Any = ""
        if one.progress is not None:
            bar = ProgressBar(total=100, completed=one.progress, width=16)
        dead = Text(str(one.dead), style="red" if one.dead else "dim")
        counts = [str(number) for number in (one.waiting, one.running)]
        ended = [str(number) for number in (one.retrying, one.completed, one.cancelled)]
        jobs.add_row(one.task, *counts, bar, *ended, dead)
    workers = Table(expand=True, box=SIMPLE_HEAD)
    for name in ("worker", "state", "running"):
        workers.add_column(name, justify="right" if name == "running" else "left")
    for worker, state, running in scene.workers:
        style = "green" if state == "active" else "red"
        workers.add_row(worker, Text(state, style=style), str(running))
    happened = Text("\n".join(f"• {line}" for line in scene.happened[-_LINES:]))
    return Group(jobs, workers, Panel(happened, title="what happens", title_align="left"))


def print_account(console: Console, account: Account) -> None:
    """The books, and whether they balance."""
    table = Table(title="The account", show_header=False)
    table.add_column("what")
    table.add_column("jobs", justify="right")
    explained = {
        "enqueued": "enqueued (committed)",
        "completed": "completed",
        "cancelled": "cancelled",
        "dead": "dead letters, with their errors",
        "retried": "attempts retried after an error",
        "reclaimed": "attempts taken back from the killed worker",
        "stale_rejected": "late ends of it, refused",
        "lost": "lost",
        "duplicates": "done twice",
    }
    figures = account.as_json()
    for name, text in explained.items():
        style = "bold" if name in {"lost", "duplicates", "enqueued"} else ""
        table.add_row(text, str(figures[name]), style=style)
    console.print(table)
    verdict = "The books balance." if account.balances else "The books do NOT balance."
    console.print(Text(verdict, style="bold green" if account.balances else "bold red"))
