"""RFC 3161: the request for a time stamp, and the verification of its response."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from asn1crypto import cms, core, tsp
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from trunkline_profiles.executor.handlers.problems import BadWork, ServiceProblem

__all__ = ["Response", "Stamp", "build_request", "read_request", "verify"]


class Response(core.Sequence):  # type: ignore[misc]
    """TimeStampResp: a rejection has no token, which the library's own class requires."""

    _fields: ClassVar = [
        ("status", tsp.PKIStatusInfo),
        ("time_stamp_token", cms.ContentInfo, {"optional": True}),
    ]


@dataclass(frozen=True, slots=True)
class Stamp:
    """A verified time stamp."""

    at: datetime
    serial: int
    policy: str
    authority: str


def build_request(digest: bytes, nonce: int) -> bytes:
    """A TimeStampReq in DER for a SHA-256 digest; the response must include the certificate."""
    return bytes(
        tsp.TimeStampReq(
            {
                "version": "v1",
                "message_imprint": {
                    "hash_algorithm": {"algorithm": "sha256"},
                    "hashed_message": digest,
                },
                "nonce": nonce,
                "cert_req": True,
            }
        ).dump()
    )


def read_request(data: bytes) -> tuple[bytes, int]:
    """Digest and nonce of a TimeStampReq."""
    request = tsp.TimeStampReq.load(data, strict=True)
    imprint = request["message_imprint"]
    return bytes(imprint["hashed_message"].native), int(request["nonce"].native)


def verify(response: bytes, request: bytes, trusted: x509.Certificate) -> Stamp:
    """Check that a TimeStampResp is for this request and was signed by the trusted authority."""
    digest, nonce = read_request(request)
    try:
        answer = Response.load(response, strict=True)
        status = answer["status"]["status"].native
        if status not in {"granted", "granted_with_mods"}:
            raise ServiceProblem(f"The authority refused: {status}")
        signed = answer["time_stamp_token"]["content"]
        info = signed["encap_content_info"]["content"].parsed
        signer = signed["signer_infos"][0]
        _check_info(info, digest, nonce)
        _check_signature(signed, signer, trusted)
        _check_authority(trusted, info["gen_time"].native)
        return Stamp(
            at=info["gen_time"].native,
            serial=info["serial_number"].native,
            policy=info["policy"].native,
            authority=trusted.subject.rfc4514_string(),
        )
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ServiceProblem(f"The response is not a time stamp: {error}") from error


def _check_info(info: Any, digest: bytes, nonce: int) -> None:
    imprint = info["message_imprint"]
    if imprint["hash_algorithm"]["algorithm"].native != "sha256":
        raise BadWork("The time stamp is over another algorithm")
    if imprint["hashed_message"].native != digest:
        raise BadWork("The time stamp is for another document")
    if info["nonce"].native != nonce:
        raise BadWork("The time stamp is for another request: the nonce differs")


def _check_signature(signed: Any, signer: Any, trusted: x509.Certificate) -> None:
    attributes = {a["type"].native: a["values"] for a in signer["signed_attrs"]}
    if attributes["content_type"][0].native != "tst_info":
        raise BadWork("The signed content is not a time stamp")
    content = hashes.Hash(hashes.SHA256())
    content.update(signed["encap_content_info"]["content"].contents)
    if attributes["message_digest"][0].native != content.finalize():
        raise BadWork("The signature is over another time stamp")
    certificate = attributes["signing_certificate_v2"][0]["certs"][0]["cert_hash"].native
    if certificate != trusted.fingerprint(hashes.SHA256()):
        raise BadWork("The time stamp was signed by an authority that is not trusted")
    # RFC 5652 5.4: the signature is over the DER of a SET, not over the implicit tag of the
    # structure.
    data = signer["signed_attrs"].untag().dump()
    key = trusted.public_key()
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signer["signature"].native, data, ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signer["signature"].native, data, padding.PKCS1v15(), hashes.SHA256())
        else:
            raise BadWork("The key of the authority is of a kind that is not supported")
    except InvalidSignature as error:
        raise BadWork("The signature of the time stamp is wrong") from error


def _check_authority(trusted: x509.Certificate, at: datetime) -> None:
    usage = trusted.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    if not usage.critical or list(usage.value) != [ExtendedKeyUsageOID.TIME_STAMPING]:
        raise BadWork("The certificate of the authority is not limited to time stamps")
    if not trusted.not_valid_before_utc <= at <= trusted.not_valid_after_utc:
        raise BadWork("The certificate of the authority was not valid at that time")
