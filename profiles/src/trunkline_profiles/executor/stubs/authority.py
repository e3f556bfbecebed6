"""A time stamp authority: a self-signed certificate, and real tokens signed with its key.

POST / with a TimeStampReq returns a TimeStampResp. GET /effects/KEY returns the earlier response
for an idempotency key. GET /certificate returns the certificate to trust.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from asn1crypto import algos, cms, core, tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trunkline_profiles.executor.handlers.http import KEY_HEADER
from trunkline_profiles.executor.handlers.rfc3161 import Response
from trunkline_profiles.executor.stubs.ledger import Ledger
from trunkline_profiles.executor.stubs.server import Answer, StubServer, as_json

__all__ = ["StubAuthority"]

# Under 1.3.6.1.4.1.99999, which is not assigned.
POLICY = "1.3.6.1.4.1.99999.1"
REPLY = "application/timestamp-reply"


class StubAuthority(StubServer):
    """Stamps every request, once per idempotency key."""

    def __init__(self) -> None:
        self.ledger: Ledger[bytes] = Ledger()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = _certificate(self._key)
        super().__init__()

    def handle(self, method: str, path: list[str], headers: dict[str, str], body: bytes) -> Answer:
        match method, path:
            case "GET", ["certificate"]:
                return 200, "application/x-pem-file", self.certificate.public_bytes(Encoding.PEM)
            case "GET", ["ledger"]:
                return as_json(200, {"keys": self.ledger.keys(), "refused": self.ledger.refused})
            case "GET", ["effects", key]:
                found = self.ledger.find(key)
                return (200, REPLY, found) if found else as_json(404, {"key": key})
            case "POST", [""]:
                key = headers.get(KEY_HEADER.lower(), "")
                if not key:
                    return as_json(400, {"problem": f"{KEY_HEADER} is missing"})
                made = self.ledger.record(key, lambda: self.stamp(body))
                return (200, REPLY, made) if made else as_json(409, {"key": key})
            case _:
                return as_json(404, {})

    def stamp(self, request: bytes) -> bytes:
        """A TimeStampResp in DER: a token, or a rejection of an invalid request."""
        try:
            asked = tsp.TimeStampReq.load(request, strict=True)
            imprint = asked["message_imprint"].copy()
            nonce = asked["nonce"].native
        except ValueError:
            status = {"status": "rejection", "fail_info": {"bad_data_format"}}
            return bytes(Response({"status": status}).dump())
        info = tsp.TSTInfo(
            {
                "version": "v1",
                "policy": POLICY,
                "message_imprint": imprint,
                "serial_number": secrets.randbits(63),
                "gen_time": datetime.now(UTC).replace(microsecond=0),
                "nonce": nonce,
            }
        )
        token = {"content_type": "signed_data", "content": self._sign(info)}
        return bytes(
            Response(
                {"status": {"status": "granted"}, "time_stamp_token": cms.ContentInfo(token)}
            ).dump()
        )

    def _sign(self, info: Any) -> Any:
        certificate = asn1_x509.Certificate.load(self.certificate.public_bytes(Encoding.DER))
        content = core.ParsableOctetString(info.dump())
        digest = hashes.Hash(hashes.SHA256())
        digest.update(content.contents)
        cert_id = tsp.ESSCertIDv2({"cert_hash": self.certificate.fingerprint(hashes.SHA256())})
        attributes = cms.CMSAttributes(
            [
                {"type": "content_type", "values": ["tst_info"]},
                {"type": "message_digest", "values": [digest.finalize()]},
                {
                    "type": "signing_certificate_v2",
                    "values": [tsp.SigningCertificateV2({"certs": [cert_id]})],
                },
            ]
        )
        signer = {
            "version": "v1",
            "sid": {
                "issuer_and_serial_number": {
                    "issuer": certificate.issuer,
                    "serial_number": certificate.serial_number,
                }
            },
            "digest_algorithm": algos.DigestAlgorithm({"algorithm": "sha256"}),
            "signed_attrs": attributes,
            "signature_algorithm": {"algorithm": "sha256_ecdsa"},
            "signature": self._key.sign(attributes.dump(), ec.ECDSA(hashes.SHA256())),
        }
        return cms.SignedData(
            {
                "version": "v3",
                "digest_algorithms": [{"algorithm": "sha256"}],
                "encap_content_info": {"content_type": "tst_info", "content": content},
                "certificates": [certificate],
                "signer_infos": [signer],
            }
        )


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Local time stamp authority")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
        .sign(key, hashes.SHA256())
    )
