"""What can go wrong in the work of a task."""

__all__ = ["BadOrder", "StudioProblem"]


class StudioProblem(Exception):
    """The work failed; another attempt may succeed."""


class BadOrder(Exception):
    """The order cannot be carried out, however often it is tried."""
