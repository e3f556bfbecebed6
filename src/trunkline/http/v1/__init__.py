"""The routes under /v1, and those about the server itself."""

from typing import Final

from trunkline.http import status
from trunkline.http.routing import Routes
from trunkline.http.v1 import jobs

__all__ = ["ROUTES"]

ROUTES: Final[tuple[Routes, ...]] = (status.ROUTES, jobs.ROUTES)
