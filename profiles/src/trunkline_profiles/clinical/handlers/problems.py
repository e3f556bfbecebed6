"""Failures of a stage, by their effect on the job."""

__all__ = ["BadDocument", "CannotRun", "Rejected", "StageProblem"]


class BadDocument(Exception):
    """No further attempt can help: the document, or data derived from it, is wrong."""


class Rejected(BadDocument):
    """The security check refused the document; ``code`` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class StageProblem(Exception):
    """A tool or a provider failed temporarily: try again later."""


class CannotRun(Exception):
    """This installation cannot run the job; the document is not refused, no retry is counted."""
