"""Log lines with the job to which they belong, and text that is safe and easy to read."""

from trunkline.telemetry.figures import age, count, size
from trunkline.telemetry.logs import JobLogger, chosen_logging, enter_job, set_up_logging
from trunkline.telemetry.text import UNSAFE, escaped, escaped_json, escaped_lines

__all__ = [
    "UNSAFE",
    "JobLogger",
    "age",
    "chosen_logging",
    "count",
    "enter_job",
    "escaped",
    "escaped_json",
    "escaped_lines",
    "set_up_logging",
    "size",
]
