"""``python -m bench [suite]``: run the measures, print a table, end with one JSON object."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.contest import command as contest
from bench.contest.catalogue import MEASURES
from bench.figures import Figure
from bench.place import open_place
from bench.rivals.environment import EnvironmentMissing
from bench.rivals.products import KEYS
from bench.sizes import QUICK, Sizes
from bench.speed.checkout import CommitMissing, check_out
from bench.speed.floor import with_floor
from bench.suites import SPEED_SUITE, SUITES, Suite

DSN_VARIABLE = "TRUNKLINE_BENCH_DSN"
RIVALS = "rivals"
_RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. A missed goal is reported, but is not an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    if options.suite == RIVALS:
        return contest.run(options)
    suite = SUITES[options.suite]
    sizes = QUICK if options.quick else suite.sizes
    changed = {
        name: getattr(options, name)
        for name in ("waiting", "finished")
        if getattr(options, name) is not None
    }
    sizes = replace(sizes, backlog_reads=replace(sizes.backlog_reads, **changed))
    if options.minutes is not None:
        sizes = replace(sizes, soak=replace(sizes.soak, minutes=options.minutes))
    begin = time.monotonic()
    try:
        before = None if options.before is None else check_out(options.before)
        suite.prepare(options.rivals)
        with (
            open_place(
                options.dsn,
                options.bindir,
                durable=not options.quick,
                before=None if before is None else before.sources,
            ) as place,
            suite.open(place, options.rivals) as (scene, more),
        ):
            facts = {**place.facts, **more}
            if before is not None:
                facts["before"] = before.commit[:12]
            print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
            names = options.only or suite.measures
            figures = _measure(suite, scene, sizes, names, floor=options.floor)
    except CommitMissing as error:
        parser.error(f"argument --before: {error}")
    except EnvironmentMissing as error:
        print(f"{error}\nWithout a package index, measure without rivals: --no-rivals")
        return 1
    _summarise(figures)
    result = {
        **{figure.key: round(figure.value, 3) for figure in figures},
        **facts,
        "databases": place.prefix,
        "quick": options.quick,
        "missed": [figure.key for figure in figures if figure.verdict == "MISSED"],
        "seconds": round(time.monotonic() - begin),
    }
    if suite.record and not (options.quick or options.only or changed):
        record = _RESULTS / suite.record
        record.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result))
    return 0


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse options that the chosen suite does not have; --before implies the suite speed."""
    if options.suite is None:
        options.suite = "engine" if options.before is None else SPEED_SUITE
    if options.before is None and options.suite == SPEED_SUITE:
        parser.error(f"the suite {SPEED_SUITE} needs --before COMMIT")
    if options.before is not None and options.suite != SPEED_SUITE:
        parser.error(f"argument --before: only with the suite {SPEED_SUITE}")
    if options.floor is not None and options.suite != SPEED_SUITE:
        parser.error(f"argument --floor: only with the suite {SPEED_SUITE}")
    measures = MEASURES if options.suite == RIVALS else SUITES[options.suite].measures
    for name in options.only or ():
        if name not in measures:
            known = ", ".join(measures)
            parser.error(f"argument --only: invalid choice: {name!r} (choose from {known})")
    for option in ("product", "repetitions", "results"):
        if getattr(options, option) is not None and options.suite != RIVALS:
            parser.error(f"argument --{option}: only with the suite {RIVALS}")
    if options.suite == RIVALS and not options.rivals:
        parser.error("argument --no-rivals: with this suite, use --product trunkline")


def _measure(
    suite: Suite, scene: Any, sizes: Sizes, names: Sequence[str], *, floor: float | None
) -> list[Figure]:
    figures: list[Figure] = []
    for name in names:
        begin = time.monotonic()
        found = with_floor(suite.run(name, scene, sizes), floor)
        print(f"\n{name} ({time.monotonic() - begin:.0f} s)")
        for figure in found:
            print(figure.line, flush=True)
        figures += found
    return figures


def _summarise(figures: Sequence[Figure]) -> None:
    goals = [figure for figure in figures if figure.goal is not None]
    missed = [figure.key for figure in goals if figure.verdict == "MISSED"]
    if goals:
        what = f"; missed: {', '.join(missed)}" if missed else ""
        print(f"\n{len(goals) - len(missed)} of {len(goals)} goals met{what}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "suite",
        nargs="?",
        choices=(*SUITES, RIVALS),
        help="engine: the functions against plain SQL; worker: our processes against PgQueuer's; "
        "drivers: ways to call the engine from Python; soak: constant arrival for minutes, and "
        "under an old snapshot; flow: what limits cost; backlog: how long operators wait while "
        "millions of jobs wait; workflows: fan-outs and the ends of their jobs; steps: recorded "
        "steps, and DBOS; artifacts: uploads to a folder and archives, and their memory; studio: "
        "claims of profile studio after a million tasks; speed: this version against another "
        "commit; rivals: all products side by side (default: engine, or speed with --before)",
    )
    parser.add_argument(
        "--dsn",
        default=os.environ.get(DSN_VARIABLE),
        help=f"a server to use instead of an embedded one, default {DSN_VARIABLE}",
    )
    parser.add_argument(
        "--before",
        metavar="COMMIT",
        help="compare with the engine, client and worker of this commit, branch or tag",
    )
    parser.add_argument(
        "--floor",
        type=float,
        metavar="RATIO",
        help="with --before: the goal for drains and single enqueues of plain jobs [0.97]",
    )
    parser.add_argument("--bindir", type=Path, help="PostgreSQL programs for the embedded server")
    parser.add_argument(
        "--only", action="append", metavar="MEASURE", help="run only this measure; may be repeated"
    )
    parser.add_argument(
        "--no-rivals", dest="rivals", action="store_false", help="measure only Trunkline"
    )
    parser.add_argument("--minutes", type=float, help="how long jobs arrive in the soak [10]")
    parser.add_argument("--waiting", type=int, help="waiting jobs for the suite backlog [2000000]")
    parser.add_argument("--finished", type=int, help="finished jobs for it [5000000]")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only checks that it runs")
    rivals = parser.add_argument_group("for the suite rivals")
    rivals.add_argument(
        "--product",
        action="append",
        choices=KEYS,
        help="measure only this one; may be repeated",
    )
    rivals.add_argument("--repetitions", type=int, metavar="N", help="default 3")
    rivals.add_argument(
        "--results",
        metavar="FILE",
        help="where to write the record and its chart; by default, a complete run writes "
        "bench/results/rivals.json, and a partial run writes nothing",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
