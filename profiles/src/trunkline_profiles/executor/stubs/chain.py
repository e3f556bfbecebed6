"""Chains by name: transactions, their blocks, and a ledger that refuses a repeated key.

POST /CHAIN/transactions, GET /CHAIN/transactions/KEY, GET /CHAIN/blocks/HEIGHT, GET /CHAIN/ledger.
A read creates a block if `block_seconds` have passed; with zero, every read creates one.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from trunkline_profiles.executor.handlers import merkle
from trunkline_profiles.executor.handlers.http import KEY_HEADER
from trunkline_profiles.executor.stubs.ledger import Ledger
from trunkline_profiles.executor.stubs.server import Answer, StubServer, as_json

__all__ = ["StubChain"]


@dataclass(slots=True)
class _Transaction:
    id: str
    digest: str
    height: int | None = None


@dataclass(slots=True)
class _Chain:
    ledger: Ledger[_Transaction] = field(default_factory=Ledger)
    waiting: list[_Transaction] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    mined_at: float = field(default_factory=time.monotonic)


class StubChain(StubServer):
    """Any number of chains by name, each with its blocks."""

    def __init__(self, block_seconds: float = 0.0) -> None:
        self.block_seconds = block_seconds
        self._lock = threading.Lock()
        self._chains: dict[str, _Chain] = {}
        super().__init__()

    def ledger(self, chain: str) -> Ledger[_Transaction]:
        """The ledger of one chain."""
        return self._chain(chain).ledger

    def handle(self, method: str, path: list[str], headers: dict[str, str], body: bytes) -> Answer:
        match method, path:
            case "POST", [chain, "transactions"]:
                return self._submit(self._chain(chain), headers.get(KEY_HEADER.lower(), ""), body)
            case "GET", [chain, "transactions", key]:
                return self._look(self._chain(chain), key)
            case "GET", [chain, "ledger"]:
                ledger = self._chain(chain).ledger
                return as_json(200, {"keys": ledger.keys(), "refused": ledger.refused})
            case _:
                return as_json(404, {})

    def _chain(self, name: str) -> _Chain:
        with self._lock:
            return self._chains.setdefault(name, _Chain())

    def _submit(self, chain: _Chain, key: str, body: bytes) -> Answer:
        try:
            digest = json.loads(body)["digest"]
            bytes.fromhex(digest)
        except (ValueError, KeyError, TypeError):
            return as_json(400, {"problem": "digest is missing or not hexadecimal"})
        if not key:
            return as_json(400, {"problem": f"{KEY_HEADER} is missing"})

        def make() -> _Transaction:
            made = _Transaction(hashlib.sha256(f"{key}:{digest}".encode()).hexdigest(), digest)
            with self._lock:
                chain.waiting.append(made)
            return made

        made = chain.ledger.record(key, make)
        return as_json(201, {"id": made.id}) if made else as_json(409, {"key": key})

    def _look(self, chain: _Chain, key: str) -> Answer:
        with self._lock:
            self._mine(chain)
        found = chain.ledger.find(key)
        if found is None:
            return as_json(404, {"key": key})
        answer: dict[str, Any] = {"id": found.id, "digest": found.digest, "confirmations": 0}
        if found.height is not None:
            block = chain.blocks[found.height]
            steps = merkle.path(
                [bytes.fromhex(id_) for id_ in block["transactions"]],
                block["transactions"].index(found.id),
            )
            answer["confirmations"] = len(chain.blocks) - found.height
            answer["block"] = {name: block[name] for name in ("height", "previous", "root", "hash")}
            answer["proof"] = [[side, node.hex()] for side, node in steps]
        return as_json(200, answer)

    def _mine(self, chain: _Chain) -> None:
        now = time.monotonic()
        if now - chain.mined_at < self.block_seconds:
            return
        chain.mined_at = now
        height = len(chain.blocks)
        ids = [transaction.id for transaction in chain.waiting]
        for transaction in chain.waiting:
            transaction.height = height
        chain.waiting = []
        previous = chain.blocks[-1]["hash"] if chain.blocks else "0" * 64
        root = merkle.root([bytes.fromhex(id_) for id_ in ids]).hex()
        chain.blocks.append(
            {
                "height": height,
                "previous": previous,
                "root": root,
                "hash": merkle.block_hash(height, previous, root),
                "transactions": ids,
            }
        )
