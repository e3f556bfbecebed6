"""What a demonstration ends with: the order, its files, and whether they balance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Account", "lines"]


@dataclass(frozen=True, slots=True)
class Account:
    """The order and its outcome."""

    documents: int
    tasks: int
    completed: int
    percent: int
    status: str
    # Rows of files, files in the store, and files of which the hash equals that of their row.
    artifacts: int
    files: int
    equal: int
    # Files that a reader accepts: pages, recordings with their duration, texts.
    opened: int
    # Files in the store without a row, and rows without their file.
    orphans: int
    missing: int
    killed: int
    # The file that the killed worker had uploaded, and whether it is gone.
    unpublished: str
    unpublished_removed: bool
    reclaimed: int
    calls: int
    paid: int
    # How often the percentage or the phase was lower than before.
    falls: int
    seconds: float

    @property
    def balanced(self) -> bool:
        """Whether every task is accounted for, and the store has what the rows say."""
        return (
            self.tasks == self.completed == 3 * self.documents
            and self.percent == 100
            and self.status == "complete"
            # A text, a PDF, a recording and metadata for each document, and the two of the order.
            and self.artifacts == 4 * self.documents + 2
            and self.artifacts == self.files == self.equal == self.opened
            and not (self.orphans or self.missing)
            and self.killed == 1
            and self.unpublished_removed
            and self.paid == self.documents
            and self.falls == 0
        )


def lines(account: Account) -> Iterator[str]:
    """The account as text."""
    yield ""
    facts = {
        "order": f"{account.status}, {account.percent} %, {account.documents} documents",
        "bar": "never went back" if not account.falls else f"went back {account.falls} times",
        "tasks": f"{account.completed} of {account.tasks} complete,"
        f" {account.reclaimed} taken back from the killed worker",
        "files": f"{account.files} in the store for {account.artifacts} rows,"
        f" {account.orphans} without a row, {account.missing} missing",
        "content": f"{account.equal} with the recorded hash, {account.opened} that open",
        "killed": f"{account.killed} worker between upload and completion",
        "its file": f"{account.unpublished.rpartition('-')[2] or 'none'},"
        f" {'removed' if account.unpublished_removed else 'NOT removed'}",
        "model": f"{account.calls} calls, {account.paid} texts paid for",
        "seconds": f"{account.seconds}",
        "balanced": "yes" if account.balanced else "NO",
    }
    for fact, value in facts.items():
        yield f"{fact:10}  {value}"
