"""``python -m bench.contest.publish``: write chart, README sections and notes from a record."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.contest.catalogue import Column, Group
from bench.contest.chart import chart
from bench.contest.command import RESULTS
from bench.contest.record import Record
from bench.contest.table import markdown
from bench.rivals.product import ROOT

__all__ = ["between", "details", "main", "section"]

_SHOWN = (
    Group(
        "drain",
        "jobs/s",
        "more",
        (Column("drain_1", "1 process"), Column("drain_2", "2 processes")),
    ),
    Group("enqueue", "jobs/s", "more", (Column("enqueue_1", "one by one"), Column("bulk", "bulk"))),
    Group(
        "pick-up",
        "ms",
        "less",
        (Column("latency_call_p50", "p50"), Column("latency_call_p99", "p99")),
    ),
    Group("processor", "s per 1,000 jobs", "less", (Column("cpu", "client and server"),)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files that show a record, which must be in the same repository."""
    parser = argparse.ArgumentParser(prog="python -m bench.contest.publish", description=__doc__)
    parser.add_argument("record", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of README.md")
    options = parser.parse_args(arguments)
    record = Record.read(options.record)
    picture = options.record.with_suffix(".svg")
    picture.write_text(chart(record), encoding="utf-8")
    shown = picture.resolve().relative_to(options.root.resolve()).as_posix()
    for path, content in (
        (options.root / "README.md", section(record, shown)),
        (options.root / "bench/README.md", details(record)),
    ):
        text = path.read_text(encoding="utf-8")
        path.write_text(between(text, "rivals", content), encoding="utf-8")
        print(f"Written: {path}")
    return 0


def section(record: Record, picture: str) -> str:
    """Return the section of the README: the chart, its source, and the figures as text."""
    machine = record.machine
    where = (
        f"{machine['cores']} cores ({machine['processor']}), {machine['system']}, "
        f"PostgreSQL {machine['server_version']}"
    )
    lines = [
        f"![Trunkline and other queues side by side]({picture})",
        "",
        f"{record.date}, `{record.command}`: {where}.",
        "Medians of three repetitions with jobs that do nothing; the same durability for all, each",
        "with its best documented settings, every job counted to have ended exactly once. Pick-up",
        "is from before the call that enqueues to the start of the handler in an idle worker.",
        "[bench/README.md](bench/README.md#rivals) describes the method and how each is set up.",
        "",
        markdown(record, _SHOWN),
    ]
    if record.skipped:
        lines += ["", f"Left out of this run: {', '.join(record.skipped)}."]
    return "\n".join(lines)


def details(record: Record) -> str:
    """Return the section of the bench's README about the last published run."""
    lines = [f"Published: {record.date}, `{record.command}`, {record.seconds // 60} minutes.", ""]
    lines += ["| product | versions | settings |", "|---|---|---|"]
    for key, settings in record.settings.items():
        versions = ", ".join(f"{name} {v}" for name, v in record.versions.get(key, {}).items())
        lines.append(f"| {record.name(key)} | {versions} | {settings} |")
    for title, notes in (
        ("Left out", record.skipped),
        ("What went wrong", {key: "; ".join(texts) for key, texts in record.errors.items()}),
    ):
        if notes:
            notes_list = [f"- {record.name(key)}: {text}" for key, text in notes.items()]
            lines += ["", f"{title}:", "", *notes_list]
    if record.goals:
        lines += ["", "| goal | ratio | |", "|---|---:|---|"]
    for goal in record.goals:
        goal_text = f"{goal['better']} {goal['goal']:g}: {goal['verdict']}"
        lines.append(f"| {goal['text']} | {goal['ratio']:.2f} | {goal_text} |")
    return "\n".join(lines)


def between(text: str, name: str, content: str) -> str:
    """Replace the text between the two marks of this name."""
    start, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise LookupError(f"there should be one {start} … {end}")
    return pattern.sub(lambda _: f"{start}\n{content}\n{end}", text)


if __name__ == "__main__":
    sys.exit(main())
