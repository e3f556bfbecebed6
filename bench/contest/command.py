"""``python -m bench rivals``: all products in turns, a table, a JSON file and a chart."""

import argparse
import dataclasses
import json
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.contest.catalogue import MEASURES
from bench.contest.chart import chart
from bench.contest.field import Field
from bench.contest.goals import as_json, judge
from bench.contest.machine import machine
from bench.contest.record import Record
from bench.contest.scene import Scene
from bench.contest.sizes import FULL, QUICK
from bench.contest.table import table
from bench.place import open_place
from bench.rivals.product import ROOT
from bench.rivals.products import KEYS

__all__ = ["RESULTS", "run"]

RESULTS = ROOT / "bench/results/rivals.json"


def run(options: argparse.Namespace) -> int:
    """Run. Missing and failing products are reported; it is an error only if none is left."""
    begin = time.monotonic()
    # A terminated run stops its server and workers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sizes = QUICK if options.quick else FULL
    if options.repetitions is not None:
        sizes = dataclasses.replace(sizes, repetitions=options.repetitions)
    measures = [name for name in MEASURES if name in (options.only or MEASURES)]
    keys = [key for key in KEYS if key in (options.product or KEYS)]
    field = Field()
    print("Products:", flush=True)
    field.prepare(keys)
    with (
        open_place(options.dsn, options.bindir, durable=not options.quick) as place,
        field.open(place, sizes, begin + sizes.run_seconds) as scene,
    ):
        facts = machine(place)
        _measure(scene, measures)
    record = _record(options, field, scene, facts, round(time.monotonic() - begin))
    print(table(record))
    _print_goals(record, scene)
    _write(record, _path(options))
    summary = {
        "databases": place.prefix,
        "failed": sorted(record.errors),
        "figures": len(record.board.results),
        "missed": [goal["key"] for goal in record.goals if goal["verdict"] == "MISSED"],
        "quick": options.quick,
        "seconds": record.seconds,
        "skipped": dict(record.skipped),
    }
    print(json.dumps(summary))
    return 0 if record.board.results else 1


def _measure(scene: Scene, measures: Sequence[str]) -> None:
    begin = time.monotonic()
    for repetition in range(scene.sizes.repetitions):
        for name in measures:
            minutes, seconds = divmod(int(time.monotonic() - begin), 60)
            at = f"{repetition + 1} of {scene.sizes.repetitions}"
            print(f"\n{name}, repetition {at} (at {minutes}:{seconds:02d})", flush=True)
            import_module(f"bench.contest.{name}").run(scene)


def _record(
    options: argparse.Namespace, field: Field, scene: Scene, facts: dict[str, Any], seconds: int
) -> Record:
    products = [entrant.product for entrant in scene.entrants]
    names = {each.key: {"name": each.name, "language": each.language} for each in products}
    goals, _ = judge(scene.board, names)
    return Record(
        date=datetime.now(UTC).date().isoformat(),
        command=_command(options),
        seconds=seconds,
        machine=facts,
        products=names,
        versions=field.versions,
        settings={each.key: each.settings for each in products},
        skipped=field.skipped,
        errors=dict(scene.errors),
        board=scene.board,
        goals=[as_json(goal) for goal in goals],
    )


def _command(options: argparse.Namespace) -> str:
    """Return the command that repeats the run, without addresses and paths."""
    more = ["--quick"] if options.quick else []
    more += [f"--only {name}" for name in options.only or ()]
    more += [f"--product {key}" for key in options.product or ()]
    if options.repetitions is not None:
        more.append(f"--repetitions {options.repetitions}")
    return " ".join(["python -m bench rivals", *more]) if more else "make bench-rivals"


def _print_goals(record: Record, scene: Scene) -> None:
    figures, open_goals = judge(scene.board, record.products)
    if figures:
        print("\nGoals, ours over theirs:")
    for figure in figures:
        print(figure.line)
    if open_goals:
        print(f"  not judged: {'; '.join(open_goals)}")
    if scene.cut_short:
        print("\nThe run reached its time limit: the last repetition is incomplete.")


def _path(options: argparse.Namespace) -> Path | None:
    """Return where to write; a partial run replaces a complete one only with --output."""
    if options.results is not None:
        return Path(options.results)
    partial = options.quick or options.only or options.product or options.repetitions
    return None if partial else RESULTS


def _write(record: Record, path: Path | None) -> None:
    if path is None:
        return
    record.write(path)
    path.with_suffix(".svg").write_text(chart(record), encoding="utf-8")
    print(f"\nWritten: {path} and {path.with_suffix('.svg').name}")
