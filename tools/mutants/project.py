"""The description of a project: its sources, its domains, and the tests of each domain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.mutants import python_sites, sql_sites
from tools.mutants.mutation import Mutation

__all__ = ["Domain", "Project"]

_SITES: Mapping[str, Callable[[str, str], list[Mutation]]] = {
    ".py": python_sites.sites,
    ".sql": sql_sites.sites,
}


@dataclass(frozen=True, slots=True)
class Domain:
    """Source folders and the folders of their tests, the most likely first."""

    sources: Sequence[str]
    # All files in these are run.
    tests: Sequence[str]
    # Of these, only files whose name or text mentions the mutated file or function.
    further: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """The folder of a project and its description."""

    root: Path
    package: str
    domains: Mapping[str, Domain]
    # The folders of packages, and those of their tests.
    source_folders: Sequence[str] = ("src",)
    test_folders: Sequence[str] = ("tests",)
    # Sources that are not mutated: generated, released, or not part of the product.
    left_out: re.Pattern[str] = re.compile(r"$^")
    # Tests that only compare generated files with their sources.
    no_tests: frozenset[str] = frozenset()
    # Commands, after the interpreter, that fail if a mutation cannot be installed.
    checks: Callable[[Mutation], Sequence[Sequence[str]]] = field(default=lambda _: ())
    # Files that these commands write.
    written: Sequence[str] = ()
    # Processes of pytest-xdist; 0 runs the tests in the process of pytest.
    processes: int = 0
    # Further options of pytest.
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    equivalents: Path | None = None

    def sources(self, domain: str) -> Iterator[Path]:
        """The files of a domain that may be mutated."""
        for folder in self.domains[domain].sources:
            base = self.root / folder
            found = [base] if base.is_file() else base.rglob("*")
            for path in sorted(found):
                name = path.relative_to(self.root).as_posix()
                if path.suffix in _SITES and not self.left_out.search(name):
                    yield path

    def sites(self, path: Path) -> list[Mutation]:
        """The possible mutations of one file."""
        name = path.relative_to(self.root).as_posix()
        return _SITES[path.suffix](name, path.read_text(encoding="utf-8"))

    def domain_of(self, path: str) -> str:
        """The domain whose source folder holds this path; the longest folder counts."""
        matches = [
            (len(folder), name)
            for name, domain in self.domains.items()
            for folder in domain.sources
            if path == folder or path.startswith(folder.rstrip("/") + "/")
        ]
        return max(matches)[1]
