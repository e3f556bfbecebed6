"""The anchor of a document in a chain: one confirmed transaction and its proof."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from trunkline_profiles.executor.handlers import merkle
from trunkline_profiles.executor.handlers.evidence import anchor_in
from trunkline_profiles.executor.handlers.http import KEY_HEADER, Service
from trunkline_profiles.executor.handlers.problems import BadWork, ServiceProblem
from trunkline_profiles.executor.handlers.protect import read_record
from trunkline_profiles.executor.handlers.store import Store

__all__ = ["Anchor", "anchor", "checked"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A confirmed transaction and its path to the root of a block."""

    chain: str
    transaction: str
    digest: str
    key: str
    height: int
    block: str
    root: str
    proof: tuple[tuple[str, str], ...]


def anchor(
    store: Store,
    document: str,
    service: Service,
    chain: str,
    key: str,
    *,
    confirmations: int,
    wait: Callable[[int], None],
) -> Anchor:
    """Anchor a protected document, or wait for the anchor that an earlier attempt submitted.

    `wait` is called with the confirmations so far whenever there are too few. It waits before the
    next check, or raises to end the attempt.
    """
    digest = read_record(store, document).sha256
    found = _look(service, chain, key)
    if found is None:
        _submit(service, chain, key, digest)
    while found is None or found["confirmations"] < confirmations:
        if found is not None:
            wait(int(found["confirmations"]))
        found = _look(service, chain, key)
        if found is None:
            raise ServiceProblem(f"{chain} no longer has the transaction of {key}")
    made = checked(found, chain, key, digest)
    store.put(document, anchor_in(chain), json.dumps(asdict(made), sort_keys=True).encode())
    return made


def _look(service: Service, chain: str, key: str) -> dict[str, Any] | None:
    reply = service.get(chain, "transactions", key)
    if reply.status == 404:
        return None
    found = reply.json()
    if reply.status != 200 or not isinstance(found, dict) or "confirmations" not in found:
        raise ServiceProblem(f"{chain} answered {reply.status}")
    return found


def _submit(service: Service, chain: str, key: str, digest: str) -> None:
    body = json.dumps({"digest": digest}).encode()
    reply = service.post(
        chain,
        "transactions",
        body=body,
        headers={"Content-Type": "application/json", KEY_HEADER: key},
    )
    # A refused key is fine: another attempt submitted after our lookup.
    if reply.status not in {201, 409}:
        raise BadWork(f"{chain} answered {reply.status}")


def checked(found: dict[str, Any], chain: str, key: str, digest: str) -> Anchor:
    """The anchor from a chain's response, if it is for this document and its proof is valid."""
    try:
        block = found["block"]
        made = Anchor(
            chain=chain,
            transaction=found["id"],
            digest=found["digest"],
            key=key,
            height=int(block["height"]),
            block=block["hash"],
            root=block["root"],
            proof=tuple((str(side), str(node)) for side, node in found["proof"]),
        )
        steps = [(side, bytes.fromhex(node)) for side, node in made.proof]
        leaf, root = bytes.fromhex(made.transaction), bytes.fromhex(made.root)
        header = merkle.block_hash(made.height, block["previous"], made.root)
    except (KeyError, TypeError, ValueError) as error:
        raise ServiceProblem(f"{chain} returned no valid proof: {error}") from error
    if made.digest != digest:
        raise BadWork(f"The transaction of {key} in {chain} is for another document")
    if header != made.block or not merkle.proves(leaf, steps, root):
        raise BadWork(f"The proof of {chain} does not lead to its block")
    return made
