"""What rows of the engine mean for an operator, and what to do about it. No I/O."""

from trunkline.operate.findings.health import health_findings
from trunkline.operate.findings.server import clock_finding, server_findings
from trunkline.operate.findings.settings import setting_findings
from trunkline.operate.findings.workload import (
    dead_letter_finding,
    disk_finding,
    store_finding,
    unserved_finding,
    worker_finding,
)

__all__ = [
    "clock_finding",
    "dead_letter_finding",
    "disk_finding",
    "health_findings",
    "server_findings",
    "setting_findings",
    "store_finding",
    "unserved_finding",
    "worker_finding",
]
