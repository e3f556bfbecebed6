"""Errors of the HTTP API: requests that it refuses before they reach the engine."""

from collections.abc import Mapping
from typing import Any, ClassVar

from trunkline.errors.base import TrunklineError


class ApiNotInstalled(TrunklineError):
    """The HTTP API was asked for, and the extra `api` is not installed."""

    code = "api_not_installed"
    hint = "Run: pip install 'trunkline[api]'"


class ApiSettingInvalid(TrunklineError):
    """A setting of the HTTP API has an invalid value."""

    code = "api_setting_invalid"
    exit_code = 2


class ApiUnreachable(TrunklineError):
    """The HTTP API does not answer, or what answers is another server."""

    code = "api_unreachable"
    hint = (
        "Check that `trunkline api` runs at this address. A job with an idempotency key is safe to "
        "create again."
    )


class RequestError(TrunklineError):
    """The HTTP API refused a request."""

    code = "request_error"
    http_status: ClassVar[int] = 400

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        detail: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.detail: dict[str, Any] = dict(detail or {})
        # Sent with the answer, such as Retry-After.
        self.headers: dict[str, str] = dict(headers or {})


class BodyTooLarge(RequestError):
    """The body of a request is larger than the server takes."""

    code = "body_too_large"
    http_status = 413
    hint = (
        "Send less, store large content elsewhere and pass a reference, or raise "
        "TRUNKLINE_API_MAX_BODY."
    )


class BodyTooSlow(RequestError):
    """The body of a request did not arrive in time."""

    code = "body_too_slow"
    http_status = 408
    hint = "Send the body at once, or raise TRUNKLINE_API_BODY_TIMEOUT."


class InvalidRequest(RequestError):
    """A field of the body, the query or the path has an unknown name or a wrong type."""

    code = "invalid_request"
    http_status = 422
    hint = "The message names the field. /openapi.json describes every request."


class MalformedRequest(RequestError):
    """The body of a request is not JSON, or a header cannot be read."""

    code = "malformed_request"
    hint = "Send JSON in UTF-8 with Content-Type: application/json."


class MethodNotAllowed(RequestError):
    """The path does not take this method."""

    code = "method_not_allowed"
    http_status = 405
    hint = "The header Allow lists the methods of the path."


class NotPermitted(RequestError):
    """The role of the caller may not do this."""

    code = "not_permitted"
    http_status = 403
    hint = "Use a key with another role: trunkline keys create NAME --role operator"


class SignInRefused(RequestError):
    """A token or a service key is not valid."""

    code = "sign_in_refused"
    http_status = 401
    hint = "Ask for a new token, or create a service key: trunkline keys create NAME"


class SignInRequired(RequestError):
    """The request has no credentials."""

    code = "sign_in_required"
    http_status = 401
    hint = "Send Authorization: Bearer with a token, or with a key of: trunkline keys create NAME"


class TooManyStreams(RequestError):
    """The server has as many open streams as it serves."""

    code = "too_many_streams"
    http_status = 503
    hint = "Wait as long as the header Retry-After says. Operators raise TRUNKLINE_API_STREAMS."


class TooManyTenantStreams(RequestError):
    """The tenant has as many open streams as one may have."""

    code = "too_many_tenant_streams"
    http_status = 429
    hint = "Close a stream first. Operators raise TRUNKLINE_API_STREAMS_PER_TENANT."


class TooManyRequests(RequestError):
    """An address has failed to sign in too often, or the server is busy."""

    code = "too_many_requests"
    http_status = 429
    hint = "Wait as long as the header Retry-After says."


class UnknownPath(RequestError):
    """The API has no such path."""

    code = "unknown_path"
    http_status = 404
    hint = "/openapi.json lists the paths."


class UnsupportedBody(RequestError):
    """The body of a request has another type than the path takes."""

    code = "unsupported_body"
    http_status = 415
    hint = "Send Content-Type: application/json."
