"""Draws mutations: a seed always gives the same sample, and a larger one begins with it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from typing import TypeVar

from tools.mutants.mutation import Mutation
from tools.mutants.project import Project

__all__ = ["draw"]

_Key = TypeVar("_Key")


def draw(project: Project, seed: int, count: int, domains: Sequence[str] = ()) -> list[Mutation]:
    """Draw a domain, a file of it, a kind and a place, each mutation at most once.

    Domains and files are weighted by the square root of their places: large ones are drawn more
    often, but small ones too. Kinds have equal weights, because locks and wake-ups are rare and
    matter most.
    """
    pools = _pools(project, domains)
    chance = random.Random(seed)  # noqa: S311 - a sample that can be repeated
    drawn: list[Mutation] = []
    while len(drawn) < count and pools:
        domain = _pick(chance, {name: _size(files) for name, files in pools.items()})
        files = pools[domain]
        path = _pick(chance, {name: len(places) for name, places in files.items()})
        kinds = defaultdict(list)
        for mutation in files[path]:
            kinds[mutation.kind].append(mutation)
        mutation = chance.choice(kinds[chance.choice(sorted(kinds))])
        drawn.append(mutation)
        files[path].remove(mutation)
        if not files[path]:
            del files[path]
        if not files:
            del pools[domain]
    return drawn


def _pools(project: Project, domains: Sequence[str]) -> dict[str, dict[str, list[Mutation]]]:
    pools: dict[str, dict[str, list[Mutation]]] = {}
    for domain in sorted(domains or project.domains):
        files = {}
        for path in project.sources(domain):
            name = path.relative_to(project.root).as_posix()
            # A subfolder may be a separate domain.
            if project.domain_of(name) == domain and (places := project.sites(path)):
                files[name] = places
        if files:
            pools[domain] = files
    return pools


def _size(files: dict[str, list[Mutation]]) -> int:
    return sum(len(places) for places in files.values())


def _pick(chance: random.Random, sizes: dict[_Key, int]) -> _Key:
    return chance.choices(list(sizes), [sqrt(size) for size in sizes.values()])[0]
