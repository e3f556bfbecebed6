"""The time stamp of a document, requested once even if the worker crashes."""

from __future__ import annotations

import json
import secrets

from cryptography import x509

from trunkline_profiles.executor.handlers import rfc3161
from trunkline_profiles.executor.handlers.evidence import REQUEST, RESPONSE, STAMP
from trunkline_profiles.executor.handlers.http import KEY_HEADER, Service
from trunkline_profiles.executor.handlers.problems import BadWork, ServiceProblem
from trunkline_profiles.executor.handlers.protect import read_record
from trunkline_profiles.executor.handlers.rfc3161 import Stamp
from trunkline_profiles.executor.handlers.store import Store

__all__ = ["stamp", "trust"]


def trust(authority: Service) -> x509.Certificate:
    """The certificate that the authority itself returns.

    Only for the local stub; trust a real authority by a certificate from another source.
    """
    return x509.load_pem_x509_certificate(authority.get("certificate").body)


def stamp(
    store: Store, document: str, authority: Service, trusted: x509.Certificate, key: str
) -> Stamp:
    """Request the time stamp of a protected document, or return that of an earlier attempt."""
    digest = read_record(store, document).digest
    request = store.get(document, REQUEST)
    if request is None or rfc3161.read_request(request)[0] != digest:
        # Stored before it is sent, because an attempt after a crash needs the nonce to check the
        # response.
        request = rfc3161.build_request(digest, secrets.randbits(64))
        store.put(document, REQUEST, request)
    response = _earlier(authority, key) or _ask(authority, key, request)
    found = rfc3161.verify(response, request, trusted)
    store.put(document, RESPONSE, response)
    facts = {"at": found.at.isoformat(), "serial": str(found.serial), "policy": found.policy}
    facts |= {"authority": found.authority, "key": key}
    store.put(document, STAMP, json.dumps(facts, sort_keys=True).encode())
    return found


def _earlier(authority: Service, key: str) -> bytes | None:
    """The earlier response for this key; looked up first, because each effect costs money."""
    reply = authority.get("effects", key)
    return reply.body if reply.status == 200 else None


def _ask(authority: Service, key: str, request: bytes) -> bytes:
    headers = {"Content-Type": "application/timestamp-query", KEY_HEADER: key}
    reply = authority.post("", body=request, headers=headers)
    if reply.status == 409:
        # Another attempt sent its request after our lookup.
        found = _earlier(authority, key)
        if found is None:
            raise ServiceProblem("The authority refused a repeated key and has no response for it")
        return found
    if reply.status != 200:
        raise BadWork(f"The authority answered {reply.status}")
    return reply.body
