"""Constant arrival at 70 % of the capacity for minutes, under conditions that make queues slow.

Two worker processes as users start them, a producer, and the server share the machine, with the
durability of production and PostgreSQL's default autovacuum. The phases: clean; another connection
holds an old snapshot; a transaction that has written stays open for a minute; there are millions of
finished and scheduled jobs; only autovacuum runs.
"""

from collections.abc import Sequence

from bench.figures import Figure
from bench.place import Place
from bench.rivals.trunkline import open_trunkline
from bench.sizes import Sizes
from bench.soak.account import Verdict
from bench.soak.course import run_course
from bench.soak.publish import publish
from bench.soak.record import Course
from bench.soak.series import PhaseFigures, phase_figures
from bench.soak.table import table

__all__ = ["judge", "run"]


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Soak; goals: 0.9 of the clean throughput under a held snapshot, 0.6 with a writer."""
    print("\nsoak", flush=True)
    with open_trunkline(place) as contender:
        course = run_course(contender, sizes.soak)
    phases = [phase_figures(course, stretch) for stretch in course.stretches]
    print(table(phases, course.verdicts))
    figures = judge(course, phases)
    publish(sizes.soak, place.facts, course, phases, figures)
    return figures


def judge(course: Course, phases: Sequence[PhaseFigures]) -> list[Figure]:
    """The main figures, with their goals; the table and the record have the rest."""
    by_key = {phase.key: phase for phase in phases}
    clean, held, writing = by_key["clean"], by_key["held"], by_key["writing"]
    seconds = held.end - held.begin
    figures = [
        Figure("soak_capacity", course.capacity, "capacity, arriving and ending", "jobs/s"),
        Figure("soak_rate", course.rate, "arrival", "jobs/s"),
        Figure(
            "soak_held_throughput_ratio",
            held.completed / clean.completed,
            f"held snapshot for {seconds:.0f} s, throughput over clean",
            goal=0.9,
        ),
        _most("soak_held_claim_p99_ratio", held.claim_p99 / clean.claim_p99, "  claim p99", 2.0),
        _most("soak_held_urgent_p99", held.urgent_p99, "  urgent job, p99", 50.0, "ms"),
        _most("soak_held_late_p99", held.late_p99, "  job committed late, p99", 50.0, "ms"),
        Figure("soak_held_claim_longest", held.claim_longest, "  longest claim", "ms"),
        Figure("soak_held_look", held.look_longest, "  longest full scan", "ms"),
        Figure(
            "soak_writing_throughput_ratio",
            writing.completed / clean.completed,
            "writing transaction, throughput over clean",
            goal=0.6,
        ),
        Figure("soak_writing_job", _long(course), "  its own job, from its commit", "ms"),
        # If this is not near zero during all of the run, the ratios are unreliable.
        Figure(
            "soak_other_cores",
            max(phase.other_cores for phase in phases),
            "other processes, worst phase",
            "cores",
        ),
        Figure("soak_drained", course.drained, "from the last arrival to the last end", "s"),
    ]
    for phase in (by_key["filled"], by_key["after"]):
        ratio = phase.completed / clean.completed
        figures += [
            Figure(f"soak_{phase.key}_throughput_ratio", ratio, f"{phase.name}, throughput"),
            Figure(
                f"soak_{phase.key}_claim_p99_ratio",
                phase.claim_p99 / clean.claim_p99,
                "  claim p99",
            ),
        ]
    return [*figures, *_books(course.verdicts)]


def _most(key: str, value: float, text: str, goal: float, unit: str = "") -> Figure:
    return Figure(key, value, text, unit, goal=goal, better="at most")


def _long(course: Course) -> float:
    """Milliseconds until the job of the writing transaction started."""
    for special in course.specials:
        if special.kind == "long" and course.slate.starts[special.number]:
            return (course.slate.starts[special.number] - special.committed) / 1e6
    return float("inf")


def _books(verdicts: dict[str, Verdict]) -> list[Figure]:
    jobs = sum(verdict.jobs for verdict in verdicts.values())
    return [
        _most(
            "soak_lost",
            sum(verdict.lost for verdict in verdicts.values()),
            f"lost of {jobs:,} jobs",
            0,
            "jobs",
        ),
        _most(
            "soak_repeated",
            sum(verdict.repeated for verdict in verdicts.values()),
            "ran or were recorded twice",
            0,
            "jobs",
        ),
    ]
