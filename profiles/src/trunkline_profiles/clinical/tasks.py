"""The tasks of the profile: its job types as jobs of an application.

A stage reads the previous stage's results from the patient's folder and works without a database
connection. Then, in one transaction, it writes its record with an audit event and completes its
job, which opens the next stage of the file's workflow. Timeouts, limits and the order of stages
are rows in the database.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trunkline import Task, Trunkline
from trunkline_profiles.clinical.handlers import providers, security
from trunkline_profiles.clinical.handlers.chores import Chores
from trunkline_profiles.clinical.handlers.files import Files
from trunkline_profiles.clinical.handlers.passes import PASSES
from trunkline_profiles.clinical.handlers.providers import Provider
from trunkline_profiles.clinical.handlers.stages import Stages
from trunkline_profiles.clinical.handlers.tools import Tools

__all__ = ["QUEUE", "TYPES", "Services", "build", "unserved"]

QUEUE: Final = "clinical"
TYPES: Final = (
    "fast_queue_security",
    "fast_queue_ocr",
    "fast_queue_spatial",
    "ai_queue_pass1",
    "ai_queue_pass2",
    "ai_queue_pass3",
    "audit_cleanup",
    "notification_delivery",
    "report_generation",
    "backup_operation",
    "system_maintenance",
    "consent_verification",
)

_log = logging.getLogger("trunkline_profiles.clinical")


@dataclass(frozen=True, slots=True)
class Services:
    """The services of the handlers; a worker does not serve types whose service is missing."""

    files: Files
    tools: Tools
    # Where copies of files are kept.
    backup: Files | None = None
    providers: Mapping[str, Provider] = field(default_factory=dict)
    # Seconds for one call.
    timeout: float = 60.0


def build(app: Trunkline, services: Services) -> dict[str, Task[..., Any]]:
    """Declare the tasks that this host can serve on an application; return them by name."""
    missing = unserved(services)
    for name, reason in missing.items():
        _log.warning("%s is not served by this worker: %s", name, reason)
    stages = Stages(services.files, services.tools, services.providers, timeout=services.timeout)
    chores = Chores(services.files, services.backup, services.providers, timeout=services.timeout)
    declare = app.task(queue=QUEUE, profile="clinical")
    for name in TYPES:
        if name not in missing:
            declare(getattr(stages, name, None) or getattr(chores, name))
    return {name: app.tasks[name] for name in TYPES if name not in missing}


def unserved(services: Services) -> dict[str, str]:
    """Job types that must not be claimed here, with the reason."""
    found = {}
    if (library := security.missing()) is not None:
        found["fast_queue_security"] = (
            f"not installed: {library}, see pip install 'trunkline-profiles[clinical]'"
        )
    if services.tools.missing:
        found["fast_queue_ocr"] = f"not installed: {', '.join(services.tools.missing)}"
    if not services.providers.keys() - Chores.PROVIDERS:
        found |= dict.fromkeys(PASSES, "no TRUNKLINE_CLINICAL_URL_... names a provider")
    for name, provider in Chores.NEEDS.items():
        if provider not in services.providers:
            found[name] = f"TRUNKLINE_CLINICAL_URL_{provider.upper()} is not set"
    if (library := providers.missing()) is not None:
        reason = f"not installed: {library}, see pip install 'trunkline-profiles[clinical]'"
        found |= dict.fromkeys((*PASSES, *Chores.NEEDS), reason)
    if services.backup is None:
        found["backup_operation"] = "TRUNKLINE_CLINICAL_BACKUP is not set"
    return found
