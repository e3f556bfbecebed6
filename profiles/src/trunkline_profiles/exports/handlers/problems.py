"""What can go wrong in the work of an export. The names reach users as texts of public_error."""

__all__ = ["BadDocument", "RenderFailed", "RenderStopped", "RenderTimeout", "RenderTooLarge"]


class BadDocument(Exception):
    """The document cannot be exported, however often it is tried."""


class RenderFailed(Exception):
    """The renderer failed; another attempt may succeed."""


class RenderTimeout(RenderFailed):
    """The renderer took too long."""


class RenderTooLarge(RenderFailed):
    """The renderer needed too much memory."""


class RenderStopped(Exception):
    """The export was cancelled while it was rendered."""
