"""Log lines with the job that they belong to."""

from trunkline.telemetry.logs import JobLogger, chosen_logging, enter_job, set_up_logging
from trunkline.telemetry.text import UNSAFE, escaped, escaped_json, escaped_lines

__all__ = [
    "UNSAFE",
    "JobLogger",
    "chosen_logging",
    "enter_job",
    "escaped",
    "escaped_json",
    "escaped_lines",
    "set_up_logging",
]
