"""The names under which evidence about a document is stored."""

from typing import Final

__all__ = ["BUNDLE", "CHAINS", "DOCUMENT", "PARTS", "RECORD", "REQUEST", "RESPONSE", "STAMP"]

DOCUMENT: Final = "document.bin"
RECORD: Final = "record.json"
REQUEST: Final = "timestamp.tsq"
RESPONSE: Final = "timestamp.tsr"
STAMP: Final = "timestamp.json"
BUNDLE: Final = "proof.zip"

CHAINS: Final = ("polygon", "bitcoin")


def anchor_in(chain: str) -> str:
    """The name of the anchor in a chain."""
    return f"anchor-{chain}.json"


# The parts of a proof, without the document, which its owner has.
PARTS: Final = (RECORD, REQUEST, RESPONSE, STAMP, *(anchor_in(chain) for chain in CHAINS))
