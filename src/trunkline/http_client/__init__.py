"""A client of the HTTP API for Python programs that have no connection to the database.

    from trunkline.http_client import SyncApiClient

    with SyncApiClient("https://jobs.example.org", key) as api:
        job = api.jobs.create("report", {"order": 17})
        result = api.jobs.wait(job.job_id)

It needs httpx2: pip install 'trunkline[http]'. Errors are those of trunkline.errors, by the code of
the answer.
"""

from trunkline.errors import HttpNotInstalled

try:
    from trunkline.http_client._async.client import AsyncApiClient
    from trunkline.http_client._sync.client import SyncApiClient
except ModuleNotFoundError as error:
    if error.name not in {"httpx2", "httpcore2"}:
        raise
    raise HttpNotInstalled(
        "The client of the HTTP API needs httpx2", hint="Run: pip install 'trunkline[http]'"
    ) from error

from trunkline.http_client.values import (
    AcceptedJob,
    AcceptedWorkflow,
    ChangedItem,
    JobPage,
    Link,
    SentEvent,
    StoredArtifact,
    WorkflowSummary,
)

__all__ = [
    "AcceptedJob",
    "AcceptedWorkflow",
    "AsyncApiClient",
    "ChangedItem",
    "JobPage",
    "Link",
    "SentEvent",
    "StoredArtifact",
    "SyncApiClient",
    "WorkflowSummary",
]
