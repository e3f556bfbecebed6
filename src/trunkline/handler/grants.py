"""Grants, settlements and clients of one attempt, asynchronous and blocking."""

from trunkline.handler._async.connections import AsyncConnections
from trunkline.handler._async.grants import AsyncGrants, AsyncLink, Grant, GrantRequest
from trunkline.handler._sync.connections import SyncConnections
from trunkline.handler._sync.grants import SyncGrant, SyncGrantRequest, SyncGrants, SyncLink

__all__ = [
    "AsyncConnections",
    "AsyncGrants",
    "AsyncLink",
    "Grant",
    "GrantRequest",
    "SyncConnections",
    "SyncGrant",
    "SyncGrantRequest",
    "SyncGrants",
    "SyncLink",
]
