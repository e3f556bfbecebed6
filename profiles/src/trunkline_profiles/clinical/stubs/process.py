"""The provider in a separate process, for workers in other processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from trunkline_profiles.clinical.stubs.limits import Account, Model

__all__ = ["Remote", "provider_process"]


class Remote:
    """A provider by its address, with the same orders and the same account."""

    def __init__(self, url: str) -> None:
        self.url = url

    def accounts(self) -> dict[str, Account]:
        """The accounts by model."""
        return {name: Account(**found) for name, found in self._ask("GET", "account").items()}

    def account(self, model: str | None = None) -> Account:
        """The account of a model; without a name, of the only one."""
        accounts = self.accounts()
        if model is None:
            (only,) = accounts.values()
            return only
        return accounts[model]

    def set_model(self, name: str, model: Model) -> None:
        """Change the settings from now on."""
        self._ask("POST", "models", {name: asdict(model)})

    def refuse(
        self, times: int = 1, *, retry_after: float | None = 1.0, model: str | None = None
    ) -> None:
        """Refuse the next calls with 429."""
        self._ask("POST", "refuse", {"times": times, "retry_after": retry_after, "model": model})

    def confuse(self, times: int = 1, kind: str = "words", *, model: str | None = None) -> None:
        """Put invalid values into the headers of the next responses."""
        self._ask("POST", "confuse", {"times": times, "kind": kind, "model": model})

    def fail(self, times: int = 1, *, status: int = 503, model: str | None = None) -> None:
        """Respond to the next calls with a server error."""
        self._ask("POST", "fail", {"times": times, "status": status, "model": model})

    def _ask(self, method: str, order: str, given: Mapping[str, Any] | None = None) -> Any:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            body = None if given is None else json.dumps(given)
            connection.request(method, f"/stub/{order}", body)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(answer["error"]["message"])
        return answer


@contextmanager
def provider_process(
    models: Mapping[str, Model], *, key: str | None = None, seed: int | None = None
) -> Iterator[Remote]:
    """Start it on a free port, and stop it at the end of the block."""
    command = [sys.executable, "-m", "trunkline_profiles.clinical.stubs.provider"]
    command += [f"--model={name}={json.dumps(asdict(model))}" for name, model in models.items()]
    command += [f"--key={key}"] if key is not None else []
    command += [f"--seed={seed}"] if seed is not None else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - stdout is a pipe
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError("The provider did not start")
            yield Remote(url)
        finally:
            process.terminate()
