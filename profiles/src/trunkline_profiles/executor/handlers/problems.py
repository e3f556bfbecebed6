"""Failures of a handler, by their effect on the job."""


class BadWork(Exception):
    """No further attempt can help: the input is wrong, or evidence does not match it."""


class ServiceProblem(Exception):
    """An outside service is unavailable or refused temporarily: try again later."""
