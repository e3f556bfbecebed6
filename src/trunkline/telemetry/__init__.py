"""What the package tells about itself: log lines with the job they belong to."""

from trunkline.telemetry.logs import JobLogger, chosen_logging, enter_job, set_up_logging

__all__ = ["JobLogger", "chosen_logging", "enter_job", "set_up_logging"]
