"""Receives notifications with a real LISTEN."""

from uuid import uuid4

from tests.support.databases import Database

__all__ = ["CANCEL", "LIVE", "WAKE", "Ear"]

WAKE, CANCEL, LIVE = "trunkline_wake", "trunkline_cancel", "trunkline_live"


class Ear:
    """A connection that listens on these channels and returns new notifications."""

    def __init__(self, database: Database) -> None:
        self.listener = database.connect("trunkline_worker")
        self._sender = database.superuser()
        for channel in (WAKE, CANCEL, LIVE):
            self.listener.execute(f"listen {channel}")

    def heard(self, channel: str = WAKE) -> list[str]:
        """Return the payloads of the notifications on a channel since the last call.

        It sends a marker and reads up to it: notifications arrive in the order of commits.
        """
        marker = str(uuid4())
        self._sender.execute("select pg_notify(%s, %s)", (WAKE, marker))
        payloads: list[str] = []
        for notification in self.listener.notifies(timeout=180):
            if notification.payload == marker:
                return payloads
            if notification.channel == channel:
                payloads.append(notification.payload)
        raise AssertionError("the marker did not arrive")
