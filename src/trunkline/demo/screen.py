"""Renders the demo in the terminal."""

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
    """Yield a function that shows a scene: live in a terminal, line by line elsewhere."""
    if not console.is_terminal:
        printed = 0

        def print_new(scene: Scene) -> None:
            nonlocal printed
            for line in scene.events[printed:]:
                console.print(f"{scene.seconds:6.1f} s  {line}")
            printed = len(scene.events)

        yield print_new
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
    for row in scene.tasks:
        bar: Any = ""
        if row.progress is not None:
            bar = ProgressBar(total=100, completed=row.progress, width=16)
        dead = Text(str(row.dead), style="red" if row.dead else "dim")
        counts = [str(number) for number in (row.waiting, row.running)]
        ended = [str(number) for number in (row.retrying, row.completed, row.cancelled)]
        jobs.add_row(row.task, *counts, bar, *ended, dead)
    workers = Table(expand=True, box=SIMPLE_HEAD)
    for name in ("worker", "state", "running"):
        workers.add_column(name, justify="right" if name == "running" else "left")
    for worker, state, running in scene.workers:
        style = "green" if state == "active" else "red"
        workers.add_row(worker, Text(state, style=style), str(running))
    events = Text("\n".join(f"• {line}" for line in scene.events[-_LINES:]))
    return Group(jobs, workers, Panel(events, title="events", title_align="left"))


def print_account(console: Console, account: Account) -> None:
    """Print the account, and whether every job ended exactly once."""
    table = Table(title="The account", show_header=False)
    table.add_column("what")
    table.add_column("jobs", justify="right")
    labels = {
        "enqueued": "enqueued (committed)",
        "completed": "completed",
        "cancelled": "cancelled",
        "dead": "dead letters, with their errors",
        "retried": "attempts retried after an error",
        "reclaimed": "attempts reclaimed from the killed worker",
        "stale_rejected": "its late completions, refused",
        "lost": "lost",
        "duplicates": "run twice",
    }
    figures = account.as_json()
    for name, text in labels.items():
        style = "bold" if name in {"lost", "duplicates", "enqueued"} else ""
        table.add_row(text, str(figures[name]), style=style)
    console.print(table)
    verdict = (
        "Every job ended exactly once." if account.balances else "NOT every job ended exactly once."
    )
    console.print(Text(verdict, style="bold green" if account.balances else "bold red"))
