"""Install, upgrade, verify, print and remove the schema. No other code changes it."""

from trunkline.schema.contract import CONTRACT, SchemaVersion, check_contract
from trunkline.schema.install import install, upgrade
from trunkline.schema.release import newer_than_package
from trunkline.schema.runner import Report
from trunkline.schema.script import script
from trunkline.schema.uninstall import UninstallReport, uninstall
from trunkline.schema.verify import Difference, verify

__all__ = [
    "CONTRACT",
    "Difference",
    "Report",
    "SchemaVersion",
    "UninstallReport",
    "check_contract",
    "install",
    "newer_than_package",
    "script",
    "uninstall",
    "upgrade",
    "verify",
]
