"""A folder with an application, whose commands run as users run them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import DEADLINE

__all__ = ["Place"]

_COMMAND = [sys.executable, "-c", "from trunkline.cli.main import main; main()"]

_APP = """
    import logging
    from trunkline import Trunkline

    app = Trunkline({arguments})


    @app.task
    async def send(to: str) -> str:
        return to


    @app.task(process=True)
    def scan(to: str) -> str:
        send.sync.enqueue(to=to)
        return to
"""


class Place:
    """A folder with an application, and a home for the embedded server that nobody else uses."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home.parent
        self.write()

    def write(self, arguments: str = "") -> None:
        """Write the application."""
        source = textwrap.dedent(_APP).replace("{arguments}", arguments)
        (self.folder / "shop.py").write_text(source, encoding="utf-8")

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRUNKLINE_", "PG"))}
        return kept | {"TRUNKLINE_HOME": str(self.home), **variables}

    def python(self, source: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script of an application that logs warnings to standard error."""
        return self._run(
            [sys.executable, "-c", "import logging; logging.basicConfig()\n" + source], variables
        )

    def trunkline(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command as users do."""
        return self._run([*_COMMAND, *arguments], variables)

    def _run(
        self, command: list[str], variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment(**variables),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=4 * DEADLINE,
            check=False,
        )

    @contextmanager
    def running(self, *arguments: str, **variables: str) -> Iterator[Path]:
        """Run a command until the block ends; gives the file of its standard error."""
        log = self.folder / "stderr.log"
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [*_COMMAND, *arguments],
                env=self.environment(**variables),
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            try:
                yield log
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=2 * DEADLINE)
