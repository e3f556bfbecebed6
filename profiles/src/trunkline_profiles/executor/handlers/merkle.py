"""Merkle trees over SHA-256: a block's root, and the path that proves a leaf is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

__all__ = ["block_hash", "path", "proves", "root"]


def _pair(left: bytes, right: bytes) -> bytes:
    # Leaves and nodes are hashed differently, so that a node cannot be presented as a leaf.
    return hashlib.sha256(b"\x01" + left + right).digest()


def _leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def _level(nodes: Sequence[bytes]) -> list[bytes]:
    # With an odd number, the last one moves up alone.
    pairs = [_pair(nodes[n], nodes[n + 1]) for n in range(0, len(nodes) - 1, 2)]
    return pairs + ([nodes[-1]] if len(nodes) % 2 else [])


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over all leaves."""
    nodes = [_leaf(leaf) for leaf in leaves]
    while len(nodes) > 1:
        nodes = _level(nodes)
    return nodes[0] if nodes else hashlib.sha256(b"").digest()


def path(leaves: Sequence[bytes], index: int) -> list[tuple[str, bytes]]:
    """The neighbours from a leaf up to the root, each with its side."""
    nodes = [_leaf(leaf) for leaf in leaves]
    steps = []
    while len(nodes) > 1:
        other = index ^ 1
        if other < len(nodes):
            steps.append(("left" if other < index else "right", nodes[other]))
        nodes = _level(nodes)
        index //= 2
    return steps


def proves(data: bytes, steps: Sequence[tuple[str, bytes]], expected: bytes) -> bool:
    """Whether the path leads from this leaf to that root."""
    node = _leaf(data)
    for side, other in steps:
        node = _pair(other, node) if side == "left" else _pair(node, other)
    return node == expected


def block_hash(height: int, previous: str, merkle_root: str) -> str:
    """The hash of a block's header."""
    return hashlib.sha256(f"{height}:{previous}:{merkle_root}".encode()).hexdigest()
