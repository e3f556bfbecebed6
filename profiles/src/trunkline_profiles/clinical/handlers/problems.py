"""What can go wrong in a stage, by what should become of the job."""

__all__ = ["BadDocument", "CannotRun", "Rejected", "StageProblem"]


class BadDocument(Exception):
    """No further attempt can help: the document or what was made of it is wrong."""


class Rejected(BadDocument):
    """The security check does not let the document pass; ``code`` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class StageProblem(Exception):
    """A tool or a provider failed in a way that may pass: try again later."""


class CannotRun(Exception):
    """This installation cannot do the work; no document is refused and no retry is counted."""
