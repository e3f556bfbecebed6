"""Applies small breaks to the sources one at a time and reports which ones the tests notice.

The user's tree is only read: mutations are applied to a copy in the system's temporary folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tools.mutants import report
from tools.mutants.baseline import BaselineFailed
from tools.mutants.mutation import KINDS
from tools.mutants.run import Options, Run
from tools.mutants.state import Result
from tools.mutants.trial import TrialError
from tools.mutants.trunkline import trunkline
from tools.mutants.workspace import WorkspaceError

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".mutants"


def main() -> int:
    project = trunkline(_ROOT)
    arguments = _parser(sorted(project.domains)).parse_args()
    options = Options(
        seed=arguments.seed,
        count=arguments.count,
        domains=arguments.domain,
        budget=arguments.budget,
        timeout=arguments.timeout,
        jobs=arguments.jobs,
        full_baseline=arguments.baseline == "full",
        only=arguments.only,
    )
    run = Run(project, options, _FOLDER)
    for entry in run.stale:
        print(f"equivalents.toml: nothing matches {entry}", file=sys.stderr)
    if arguments.list:
        for mutation in run.mutations:
            place = f"{mutation.path}:{mutation.line}"
            print(f"{mutation.key} {place} {mutation.scope} [{mutation.kind}]")
            print(f"  - {mutation.before}\n  + {mutation.after}")
        return 0
    try:
        run.go(_tell)
    except (BaselineFailed, TrialError, WorkspaceError) as error:
        print(error, file=sys.stderr)
        return 2
    return _finish(run, options)


def _finish(run: Run, options: Options) -> int:
    facts = report.summary(run.results, seed=options.seed, sampled=len(run.mutations))
    run.report.parent.mkdir(exist_ok=True)
    run.report.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    print(report.table(run.results, run.groups))
    left = len(run.mutations) - len(run.results)
    if left:
        print(f"\n{left} mutations were not tried; the same command continues with them.")
    print(report.short(facts))
    return 0


def _tell(result: Result) -> None:
    path = result.path.removeprefix("src/trunkline/").removeprefix("profiles/src/")
    place = f"{path}:{result.line}"
    print(f"{result.outcome:10} {result.seconds:6.0f} s  {place} [{result.kind}]", flush=True)


def _parser(domains: list[str]) -> argparse.ArgumentParser:
    kinds = "; ".join(f"{name}: {meaning}" for name, meaning in KINDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description=__doc__, epilog=f"Kinds of mutation. {kinds}."
    )
    add = parser.add_argument
    add("--seed", type=int, default=1, help="seed of the sample (default: %(default)s)")
    add("--count", type=int, default=20, help="mutations to draw (default: %(default)s)")
    add("--domain", action="append", default=[], choices=domains, help="only this one; repeatable")
    add("--budget", type=float, metavar="MINUTES", help="start no mutation after this time")
    add("--timeout", type=float, default=30, metavar="MINUTES", help="for one mutation's tests")
    add("--jobs", type=int, default=1, help="copies that work in parallel")
    add("--baseline", choices=["full", "lazy"], default="full", help=_BASELINE)
    add("--only", action="append", default=[], metavar="KEY", help="only this one; repeatable")
    add("--list", action="store_true", help="show the sample and run nothing")
    return parser


_BASELINE = (
    "full: all chosen tests must pass without a mutation first; "
    "lazy: only a test that fails is tried without it"
)

if __name__ == "__main__":
    sys.exit(main())
