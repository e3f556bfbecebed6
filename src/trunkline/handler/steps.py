"""Durable steps: the implementation behind `ctx.step` and the waits, for both kinds of handlers."""

from trunkline.handler._async.steps import AsyncStepLink, AsyncSteps
from trunkline.handler._sync.steps import SyncStepLink, SyncSteps

__all__ = ["AsyncStepLink", "AsyncSteps", "SyncStepLink", "SyncSteps"]
