"""Collects tests/sql/**/*.sql: each file is one test per server, in its own database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import databases, servers, tap


class TapFailure(Exception):
    """A pgTAP file did not pass; the message has the problems and the whole output."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    # helpers/ has files that others include.
    if file_path.suffix != ".sql" or "helpers" in file_path.parts:
        return None
    return SqlFile.from_parent(parent, path=file_path)


class SqlFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        for major in servers.majors():
            yield SqlItem.from_parent(self, name=f"pg{major}", major=major)


class SqlItem(pytest.Item):
    def __init__(self, *, name: str, parent: pytest.Collector, major: int) -> None:
        super().__init__(name, parent)
        self.major = major

    def runtest(self) -> None:
        running = self.config.stash[servers.STASH]
        server = next(server for server in running if server.major == self.major)
        with databases.fresh(server, databases.ensure_template_tap(server)) as database:
            verdict = tap.run(database, self.path)
        if verdict.problems:
            raise TapFailure("\n".join(verdict.problems) + "\n\n" + verdict.output)

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: object = None,  # noqa: ARG002 - pytest's signature
    ) -> str:
        if isinstance(excinfo.value, TapFailure):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}[{self.name}]"
