"""The application object, tasks, and everything that makes and watches jobs."""

from trunkline.client.application import Trunkline
from trunkline.client.context import Context
from trunkline.client.loading import load
from trunkline.client.request import Options, Request
from trunkline.client.task import Task

__all__ = ["Context", "Options", "Request", "Task", "Trunkline", "load"]
