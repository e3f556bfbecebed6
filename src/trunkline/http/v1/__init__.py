"""The routes under /v1, and those about the server itself."""

from typing import Final

from trunkline.http import status
from trunkline.http.routing import Routes
from trunkline.http.streams import routes as streams
from trunkline.http.v1 import artifacts, bulk, flow, jobs, running, workflows

__all__ = ["ROUTES"]

# Bulk changes before single jobs: their paths look like ids.
ROUTES: Final[tuple[Routes, ...]] = (
    status.ROUTES,
    bulk.ROUTES,
    jobs.ROUTES,
    workflows.ROUTES,
    workflows.BATCHES,
    artifacts.ROUTES,
    artifacts.EVENTS,
    flow.ROUTES,
    running.ROUTES,
    streams.ROUTES,
)
