"""The profile as a separate application: ``trunkline worker trunkline_profiles.executor.app``.

Environment variables configure the services of the handlers, see `_VARIABLES`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from trunkline import Trunkline
from trunkline.errors import ProfileError, ProfileNeedsPackages
from trunkline_profiles.executor.handlers.http import Service
from trunkline_profiles.executor.handlers.store import Store

try:
    from cryptography import x509

    from trunkline_profiles.executor.tasks import Services, build
except ModuleNotFoundError as missing:
    raise ProfileNeedsPackages(
        f"The executor's handlers need {missing.name}",
        hint="Install them with: pip install 'trunkline-profiles[executor]'",
    ) from missing

__all__ = ["app", "services"]

_VARIABLES: Final = {
    "TRUNKLINE_EXECUTOR_INBOX": "folder with incoming documents",
    "TRUNKLINE_EXECUTOR_STORE": "folder where evidence is stored",
    "TRUNKLINE_EXECUTOR_TSA": "address of the time stamp authority",
    "TRUNKLINE_EXECUTOR_TSA_CERTIFICATE": "file with the authority's trusted certificate, in PEM",
    "TRUNKLINE_EXECUTOR_CHAIN": "address of the chain gateway",
}


def services() -> Services:
    """The services that the environment names."""
    missing = [name for name in _VARIABLES if not os.environ.get(name)]
    if missing:
        raise ProfileError(
            "Environment variables for the handlers are missing",
            hint="Set " + "; ".join(f"{name} ({_VARIABLES[name]})" for name in missing) + ".",
        )
    inbox, store, authority, certificate, chain = (os.environ[name] for name in _VARIABLES)
    try:
        trusted = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    except (OSError, ValueError) as error:
        raise ProfileError(f"The certificate {certificate} cannot be read: {error}") from error
    return Services(
        inbox=Path(inbox),
        store=Store(Path(store)),
        authority=Service(authority),
        trusted=trusted,
        chain=Service(chain),
        look_every=float(os.environ.get("TRUNKLINE_EXECUTOR_LOOK_EVERY", "5")),
    )


app = Trunkline()
build(app, services())
