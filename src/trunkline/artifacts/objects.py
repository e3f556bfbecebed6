"""Stores in buckets: S3 and what speaks its protocol, Google Cloud Storage, Azure. Uses obstore."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NoReturn

from trunkline.artifacts.content import Meter
from trunkline.artifacts.names import content_disposition, is_safe_path, is_safe_to_send
from trunkline.artifacts.store import CHUNK, Capabilities, StoredFile, Written
from trunkline.errors import (
    FileHeadersUnsafe,
    FileMissing,
    InvalidArgument,
    StoreDenied,
    StoreFull,
    StoreNotInstalled,
    StoreUnreachable,
)

__all__ = ["ObjectStore"]

# Two parts are sent at a time, so an upload holds about 30 MB. A bucket takes 10,000 parts: 80 GB.
_PART: Final = 8 << 20
_PARTS_AT_ONCE: Final = 2
# Bytes of one request: a part, or a chunk of a download. A store that hangs ends here.
_CLIENT: Final = {"timeout": "60s", "connect_timeout": "10s"}
_RETRIES: Final = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=90),
    "backoff": {
        "init_backoff": timedelta(milliseconds=200),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}
# Links for uploads end within an hour. A file that is older, with room for clocks, stays as it is.
_LONGEST_UPLOAD: Final = 3600
_UPLOADS_END: Final = timedelta(hours=2)
_REMEMBERED: Final = 10_000
# The text of an error also has paths and durations, which may contain such numbers and names.
_FULL: Final = (
    "status code: 507 ",
    "<Code>InsufficientStorage</Code>",
    "<Code>QuotaExceeded</Code>",
    "<Code>XMinioStorageFull</Code>",
    "<Code>EntityTooLarge</Code>",
)


class ObjectStore:
    """Files in a bucket, below a prefix.

    Credentials and the endpoint come from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …)
    or from `options`, which are those of obstore's stores.
    """

    def __init__(
        self,
        url: str,
        *,
        capabilities: Capabilities | None = None,
        options: Mapping[str, Any] | None = None,
        client_options: Mapping[str, Any] | None = None,
        retry_config: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            self._obstore: Any = importlib.import_module("obstore")
            make: Any = importlib.import_module("obstore.store").from_url
        except ModuleNotFoundError as error:
            raise StoreNotInstalled(f"{url} needs obstore, which is not installed") from error
        self._arguments = (url, capabilities, options, client_options, retry_config)
        self._url = url.rstrip("/")
        self._capabilities = capabilities or Capabilities()
        # Files whose headers are known to be safe, and stay as they are.
        self._safe: dict[str, None] = {}
        try:
            self._store = make(
                self._url,
                client_options={**_CLIENT, **(client_options or {})},
                retry_config={**_RETRIES, **(retry_config or {})},
                **(options or {}),
            )
        except self._obstore.exceptions.BaseError as error:
            raise StoreDenied(f"{url} cannot be opened: {_first_line(error)}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._arguments

    def __repr__(self) -> str:
        return f"ObjectStore({self._url!r})"

    @property
    def address(self) -> str:
        """The address that `open_store` takes, without credentials."""
        return self._url

    @property
    def capabilities(self) -> Capabilities:
        """What the store answers by itself, as declared or as seen since."""
        return self._capabilities

    def put(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        content_type: str | None = None,
        filename: str | None = None,
    ) -> Written:
        """Write a file; see Store.put. Type and name become attributes of the object."""
        _check(path)
        meter = Meter(chunks)
        attributes = {
            "Content-Type": content_type or "application/octet-stream",
            "Content-Disposition": content_disposition(
                filename or path.rpartition("/")[2], content_type
            ),
        }
        source = iter(meter)
        with self._errors(path, meter):
            # One request if the content fits into a part; otherwise parts, while it passes.
            head: list[bytes] = []
            size = 0
            for chunk in source:
                head.append(chunk)
                size += len(chunk)
                if size > _PART:
                    break
            else:
                self._obstore.put(
                    self._store, path, b"".join(head), attributes=attributes, use_multipart=False
                )
                return meter.written
            self._obstore.put(
                self._store,
                path,
                _chained(head, source),
                attributes=attributes,
                use_multipart=True,
                chunk_size=_PART,
                max_concurrency=_PARTS_AT_ONCE,
            )
        return meter.written

    def create(self, path: str, content: bytes) -> bool:
        """Write a small file if there is none; see Store.create."""
        _check(path)
        with self._errors(path):
            if not self._capabilities.conditional_create:
                try:
                    self._obstore.head(self._store, path)
                except FileNotFoundError:
                    self._obstore.put(self._store, path, content)
                    return True
                return False
            try:
                self._obstore.put(self._store, path, content, mode="create")
            except self._obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def read(self, path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the content in chunks; see Store.read."""
        _check(path)
        if stop is not None and start >= stop:
            self.head(path)
            return iter(())
        with self._errors(path):
            if (start or stop is not None) and self._capabilities.ranges:
                try:
                    return self._chunks(path, self._get(path, start, stop))
                except self._obstore.exceptions.BaseError as error:
                    if "NotPartial" not in str(error):
                        if start and self._obstore.head(self._store, path)["size"] <= start:
                            return iter(())
                        raise
                    # The server answers 200 to a range. Read from the beginning from now on.
                    self._capabilities = Capabilities(
                        ranges=False,
                        conditional_create=self._capabilities.conditional_create,
                        signed_uploads=self._capabilities.signed_uploads,
                    )
            answer = self._obstore.get(self._store, path)
        return _cut(self._chunks(path, answer), start, stop)

    def head(self, path: str) -> StoredFile:
        """Return size and time of a file."""
        _check(path)
        with self._errors(path):
            return _stored(self._obstore.head(self._store, path))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files."""
        for path in paths:
            _check(path)
            try:
                with self._errors(path):
                    self._obstore.delete(self._store, path)
            except FileMissing:
                continue

    def list(self, prefix: str = "", after: str = "") -> Iterator[StoredFile]:
        """Return files in the order of their paths; see Store.list."""
        # A bucket lists below a folder. What follows the last slash is compared here.
        folder = prefix.rpartition("/")[0]
        with self._errors(prefix):
            pages = self._obstore.list(
                self._store, folder or None, offset=after or None, chunk_size=1000
            )
            for page in pages:
                for found in page:
                    path: str = found["path"]
                    if path.startswith(prefix) and path > after and is_safe_path(path):
                        yield _stored(found)

    def sign(
        self,
        path: str,
        *,
        method: str = "GET",
        expires_in: int = 3600,
        content_type: str | None = None,
        filename: str | None = None,  # noqa: ARG002 - an attribute of the object
        max_bytes: int | None = None,  # noqa: ARG002 - no bucket checks it
    ) -> str:
        """Return a link of the store. Type and name are those of the upload.

        A link cannot prescribe the headers of an upload, and cannot replace them for a reader. So
        a file is looked up before a link for reading is signed, unless the bucket takes no uploads
        through links.
        """
        _check(path)
        if method == "GET" and content_type is not None and self._capabilities.signed_uploads:
            self._check_headers(path)
        seconds = min(expires_in, _LONGEST_UPLOAD) if method == "PUT" else expires_in
        with self._errors(path):
            link: str = self._obstore.sign(self._store, method, path, timedelta(seconds=seconds))
        return link

    def _check_headers(self, path: str) -> None:
        if path in self._safe:
            return
        try:
            with self._errors(path):
                found = self._obstore.get(self._store, path, options={"head": True})
        except FileMissing:
            # The link leads to nothing, or to a file that is signed for again.
            return
        sent = found.attributes
        if not is_safe_to_send(sent.get("Content-Type"), sent.get("Content-Disposition")):
            raise FileHeadersUnsafe(
                f"{path} was uploaded as {sent.get('Content-Type')} without the header "
                "Content-Disposition of its link"
            )
        if found.meta["last_modified"] < datetime.now(UTC) - _UPLOADS_END:
            if len(self._safe) >= _REMEMBERED:
                self._safe.clear()
            self._safe[path] = None

    def _get(self, path: str, start: int, stop: int | None) -> Any:
        wanted = {"offset": start} if stop is None else (start, stop)
        return self._obstore.get(self._store, path, options={"range": wanted})

    def _chunks(self, path: str, answer: Any) -> Iterator[bytes]:
        # The size at the start: a connection that ends early is not the end of the file.
        start, stop = answer.range
        return self._streamed(path, answer, stop - start)

    def _streamed(self, path: str, answer: Any, size: int) -> Iterator[bytes]:
        received = 0
        with self._errors(path):
            for chunk in answer.stream(min_chunk_size=CHUNK):
                data = bytes(chunk)
                received += len(data)
                yield data
        if received != size:
            raise StoreUnreachable(f"The store sent {received} of {size} bytes of {path}")

    @contextmanager
    def _errors(self, path: str, meter: Meter | None = None) -> Iterator[None]:
        """Turn errors of obstore into ours, but not those of the content's source."""
        try:
            yield
        except FileNotFoundError as error:
            # Of the source, or of a server that knows no parts to take back.
            if meter is not None and meter.failure is not None:
                raise meter.failure from None
            raise FileMissing(f"The store has no file {path}") from error
        except (self._obstore.exceptions.BaseError, OSError, ValueError) as error:
            if meter is not None and meter.failure is not None:
                raise meter.failure from None
            self._raise(error, path)

    def _raise(self, error: Exception, path: str) -> NoReturn:
        kinds = self._obstore.exceptions
        text = str(error)
        reason = _first_line(error)
        if isinstance(error, (kinds.PermissionDeniedError, kinds.UnauthenticatedError)):
            raise StoreDenied(f"The store refused {path}: {reason}") from None
        if any(mark in text for mark in _FULL):
            raise StoreFull(f"The store has no space for {path}: {reason}") from None
        raise StoreUnreachable(f"The store failed at {path}: {reason}") from None


def _again(url: str, capabilities: Any, options: Any, client: Any, retry: Any) -> ObjectStore:
    return ObjectStore(
        url,
        capabilities=capabilities,
        options=options,
        client_options=client,
        retry_config=retry,
    )


def _chained(head: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    while head:
        yield head.pop(0)
    yield from rest


def _cut(chunks: Iterator[bytes], start: int, stop: int | None) -> Iterator[bytes]:
    position = 0
    with closing(chunks):  # type: ignore[type-var]  # a generator
        for chunk in chunks:
            low = max(start - position, 0)
            high = len(chunk) if stop is None else min(stop - position, len(chunk))
            if low < high:
                yield chunk[low:high]
            position += len(chunk)
            if stop is not None and position >= stop:
                return


def _stored(found: Mapping[str, Any]) -> StoredFile:
    return StoredFile(found["path"], found["size"], found["last_modified"])


def _check(path: str) -> None:
    if not is_safe_path(path):
        raise InvalidArgument(
            "the path of a stored file is not valid",
            detail={"path": ascii(path)[:300]},
            hint="Use names separated by slashes. No name may be empty or begin with a dot.",
        )


def _first_line(error: Exception) -> str:
    # The rest repeats the error with addresses and headers of the request.
    return str(error).split("\n", 1)[0].partition("?X-Amz-")[0][:300]
