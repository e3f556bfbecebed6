"""The phases side by side, for a terminal."""

from collections.abc import Callable, Mapping, Sequence

from bench.soak.account import Verdict
from bench.soak.series import PhaseFigures

__all__ = ["table"]

_WIDE = 26
_COLUMN = 15

_Value = Callable[[PhaseFigures], float]

# Text, value, format; True if the ratio to the clean phase is printed too.
_ROWS: tuple[tuple[str, _Value, str, bool], ...] = (
    ("arrived, jobs/s", lambda p: p.arrived, ",.0f", False),
    ("completed, jobs/s", lambda p: p.completed, ",.0f", True),
    ("claim p50, ms", lambda p: p.claim_p50, ".1f", True),
    ("claim p99, ms", lambda p: p.claim_p99, ".1f", True),
    ("longest claim, ms", lambda p: p.claim_longest, ",.0f", False),
    ("jobs a claim", lambda p: p.jobs_per_claim, ".0f", False),
    ("longest full scan, ms", lambda p: p.look_longest, ",.0f", False),
    ("commit to handler p50, ms", lambda p: p.latency_p50, ".1f", True),
    ("commit to handler p99, ms", lambda p: p.latency_p99, ".1f", True),
    ("urgent p99, ms", lambda p: p.urgent_p99, ".1f", False),
    ("committed late p99, ms", lambda p: p.late_p99, ".1f", False),
    ("dead rows, at most", lambda p: p.dead_most, ",.0f", False),
    ("workers, cores", lambda p: p.worker_cores, ".2f", False),
    ("server, cores", lambda p: p.server_cores, ".2f", False),
    ("others, cores", lambda p: p.other_cores, ".2f", False),
)


def table(phases: Sequence[PhaseFigures], verdicts: Mapping[str, Verdict]) -> str:
    """Return the table; a value is followed by its ratio to the clean phase, in parentheses."""
    lines = [" " * _WIDE + "".join(f"{_short(phase.name):>{_COLUMN}}" for phase in phases)]
    seconds = "".join(f"{phase.end - phase.begin:>{_COLUMN}.0f}" for phase in phases)
    lines.append(f"{'seconds':<{_WIDE}}{seconds}")
    for text, value, form, compared in _ROWS:
        cells = [_cell(value(phase), value(phases[0]), form, compared) for phase in phases]
        lines.append(f"{text:<{_WIDE}}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells))
    for text in ("lost", "repeated"):
        counts = [getattr(verdicts[phase.key], text) for phase in phases]
        lines.append(f"{text:<{_WIDE}}" + "".join(f"{count:>{_COLUMN},}" for count in counts))
    return "\n".join(f"  {line}" for line in lines)


def _cell(value: float, clean: float, form: str, compared: bool) -> str:
    ratio = f" ({value / clean:.2f})" if compared and clean else ""
    return f"{value:{form}}{ratio}"


def _short(name: str) -> str:
    return name if len(name) < _COLUMN else f"{name[: _COLUMN - 2]}…"
