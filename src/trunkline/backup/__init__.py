"""Save a whole database with its roles to one file, and restore it into another server.

The file is a tar archive: ``manifest.json`` (roles, memberships, settings, row counts),
``database.dump`` (the custom format of pg_dump) and ``sha256`` (its checksum).
"""

from trunkline.backup.restoring import Restored, restore
from trunkline.backup.saving import Saved, save

__all__ = ["Restored", "Saved", "restore", "save"]
