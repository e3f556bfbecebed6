"""``python -m bench``: run the measures, print a table, end with one JSON object."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench.figures import Figure
from bench.place import Place, open_place
from bench.sizes import FULL, QUICK, Sizes

# In the order of the run; modules of bench.measures.
MEASURES = ("claim_complete", "enqueue_many", "enqueue", "wal", "depth", "held_snapshot")
DSN_VARIABLE = "TRUNKLINE_BENCH_DSN"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; a missed goal is told, not an error."""
    options = _parser().parse_args(arguments)
    sizes = QUICK if options.quick else FULL
    begin = time.monotonic()
    with open_place(options.dsn, options.bindir, durable=not options.quick) as place:
        facts = place.facts
        print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
        figures = _measure(place, sizes, options.only or MEASURES)
    _summarise(figures)
    result = {
        **{figure.key: round(figure.value, 3) for figure in figures},
        **facts,
        "quick": options.quick,
        "missed": [figure.key for figure in figures if figure.verdict == "MISSED"],
        "seconds": round(time.monotonic() - begin),
    }
    print(json.dumps(result))
    return 0


def _measure(place: Place, sizes: Sizes, names: Sequence[str]) -> list[Figure]:
    figures: list[Figure] = []
    for name in names:
        begin = time.monotonic()
        found: list[Figure] = import_module(f"bench.measures.{name}").run(place, sizes)
        print(f"\n{name} ({time.monotonic() - begin:.0f} s)")
        for figure in found:
            print(_line(figure), flush=True)
        figures += found
    return figures


def _summarise(figures: Sequence[Figure]) -> None:
    goals = [figure for figure in figures if figure.goal is not None]
    missed = [figure.key for figure in goals if figure.verdict == "MISSED"]
    if goals:
        what = f"; missed: {', '.join(missed)}" if missed else ""
        print(f"\n{len(goals) - len(missed)} of {len(goals)} goals met{what}")


def _line(figure: Figure) -> str:
    value = f"{figure.value:,.0f}" if figure.unit else f"{figure.value:.2f}"
    line = f"  {figure.text:<44} {value:>10} {figure.unit:<7}"
    if figure.goal is not None:
        goal = f"{figure.goal:,.0f}" if figure.unit else f"{figure.goal:g}"
        line += f" goal {figure.better} {goal}: {figure.verdict}"
    return line.rstrip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--dsn",
        default=os.environ.get(DSN_VARIABLE),
        help=f"a server to use instead of an embedded one, default {DSN_VARIABLE}",
    )
    parser.add_argument("--bindir", type=Path, help="PostgreSQL programs for the embedded server")
    parser.add_argument(
        "--only", action="append", choices=MEASURES, help="run this measure only; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: proves that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
