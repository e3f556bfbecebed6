"""Errors and log lines of calls, without the parts of a URL that may be secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpcore2
import httpx2

from trunkline.handler.http.exchange import Exchange

__all__ = ["bad_status", "failures", "hide_queries", "place"]

_EXCERPT: Final = 200


def place(url: httpx2.URL) -> str:
    """Return a URL without user, password and query, which may contain secrets."""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None))


@contextmanager
def failures(request: httpx2.Request, exchange: Exchange) -> Iterator[None]:
    """Raise errors of httpcore2 as the errors of httpx2 with the same names."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
        OSError,
    ) as error:
        kind = getattr(httpx2, type(error).__name__, httpx2.NetworkError)
        raise kind(_message(request, exchange, error), request=request) from error


def _message(request: httpx2.Request, exchange: Exchange, error: Exception) -> str:
    url = place(request.url)
    if isinstance(error, httpcore2.TimeoutException):
        if exchange.last:
            return f"{url} did not answer within {exchange.total:g} seconds"
        return f"{url} did not answer in time: {type(error).__name__}"
    return f"{request.method} {url} failed: {str(error) or type(error).__name__}"


def bad_status(response: httpx2.Response) -> httpx2.HTTPStatusError:
    """Return the error for an answer with a bad status, with the start of its text."""
    message = f"{place(response.url)} answered {response.status_code} {response.reason_phrase}"
    try:
        text = response.text[:_EXCERPT].strip()
    except httpx2.ResponseNotRead:
        # The answer is a stream that the handler has not read yet.
        text = ""
    return httpx2.HTTPStatusError(
        f"{message}: {text}" if text else message, request=response.request, response=response
    )


def hide_queries(record: logging.LogRecord) -> bool:
    """Log requests without their queries; a filter for the logger of httpx2."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            place(argument) if isinstance(argument, httpx2.URL) else argument
            for argument in record.args
        )
    return True
