"""The application object, tasks, and everything that creates and follows jobs."""

from trunkline.client._async.connection import AsyncClient
from trunkline.client._async.jobs import AsyncJobHandle as JobHandle
from trunkline.client._async.workflows import AsyncWorkflowHandle as WorkflowHandle
from trunkline.client._sync.jobs import SyncJobHandle
from trunkline.client._sync.workflows import SyncWorkflowHandle
from trunkline.client.app_path import load
from trunkline.client.application import Trunkline
from trunkline.client.graph import Step, StepSet
from trunkline.client.request import Options, Request
from trunkline.client.task import Task
from trunkline.client.workflow import Batch, Workflow

__all__ = [
    "AsyncClient",
    "Batch",
    "JobHandle",
    "Options",
    "Request",
    "Step",
    "StepSet",
    "SyncJobHandle",
    "SyncWorkflowHandle",
    "Task",
    "Trunkline",
    "Workflow",
    "WorkflowHandle",
    "load",
]
