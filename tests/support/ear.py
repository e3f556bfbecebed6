"""Hears what is notified, by real LISTEN."""

from uuid import uuid4

from tests.support.databases import Database

__all__ = ["CANCEL", "WAKE", "Ear"]

WAKE, CANCEL = "trunkline_wake", "trunkline_cancel"


class Ear:
    """A connection that listens on both channels and tells what it heard since the last time."""

    def __init__(self, database: Database) -> None:
        self.listener = database.connect("trunkline_worker")
        self.crier = database.superuser()
        for channel in (WAKE, CANCEL):
            self.listener.execute(f"listen {channel}")

    def heard(self, channel: str = WAKE) -> list[str]:
        """Notifications come in the order of commits: what is there before a cry was all."""
        cry = str(uuid4())
        self.crier.execute("select pg_notify(%s, %s)", (WAKE, cry))
        found: list[str] = []
        for notify in self.listener.notifies(timeout=180):
            if notify.payload == cry:
                return found
            if notify.channel == channel:
                found.append(notify.payload)
        raise AssertionError("not even the own cry was heard")
