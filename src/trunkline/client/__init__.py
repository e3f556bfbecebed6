"""The application object, tasks, and everything that makes and watches jobs."""

from trunkline.client._async.jobs import AsyncJobHandle as JobHandle
from trunkline.client._sync.jobs import SyncJobHandle
from trunkline.client.application import Trunkline
from trunkline.client.loading import load
from trunkline.client.request import Options, Request
from trunkline.client.task import Task

__all__ = ["JobHandle", "Options", "Request", "SyncJobHandle", "Task", "Trunkline", "load"]
