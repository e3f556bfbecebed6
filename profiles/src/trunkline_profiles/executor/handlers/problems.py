"""What can go wrong in a handler, by what should become of the job."""


class BadWork(Exception):
    """No further attempt can help: the input is wrong, or evidence does not match it."""


class ServiceProblem(Exception):
    """An outside service is away or refused for a reason that may pass: try again later."""
