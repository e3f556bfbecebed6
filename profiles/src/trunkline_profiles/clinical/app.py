"""The profile as a separate application: ``trunkline worker trunkline_profiles.clinical.app``.

Environment variables configure the services of the handlers. A worker does not serve job types
whose services or programs are missing, and logs them when it starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from trunkline import Trunkline
from trunkline.errors import ProfileError
from trunkline_profiles.clinical.handlers.files import Folder
from trunkline_profiles.clinical.handlers.providers import providers
from trunkline_profiles.clinical.handlers.tools import find_tools
from trunkline_profiles.clinical.tasks import Services, build

__all__ = ["app", "services"]


def services(environment: Mapping[str, str]) -> Services:
    """The services that the environment names."""
    store = environment.get("TRUNKLINE_CLINICAL_STORE")
    if not store:
        raise ProfileError(
            "TRUNKLINE_CLINICAL_STORE is not set",
            hint="Set TRUNKLINE_CLINICAL_STORE to the folder of files that all workers share.",
        )
    backup = environment.get("TRUNKLINE_CLINICAL_BACKUP")
    return Services(
        files=Folder(Path(store)),
        tools=find_tools(),
        backup=Folder(Path(backup)) if backup else None,
        providers=providers(environment),
        timeout=float(environment.get("TRUNKLINE_CLINICAL_TIMEOUT", "60")),
    )


app = Trunkline()
build(app, services(os.environ))
