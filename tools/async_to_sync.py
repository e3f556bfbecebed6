"""Writes the `_sync` twins of the packages `_async` in artifacts, client, handler and operate.

`python -m tools.generate` runs this; with --check it only reports outdated files.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "trunkline"

_EVERYWHERE = {
    "AsyncPool": "SyncPool",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "_async": "_sync",
}
# The names to replace, by package: two packages have clients, of different kinds.
_NAMES = {
    "artifacts": {
        "AsyncArchive": "SyncArchive",
        "AsyncArtifacts": "SyncArtifacts",
        "AsyncCalls": "SyncCalls",
        "AsyncContent": "Content",
        "AsyncIterator": "Iterator",
        "AsyncLargeResults": "SyncLargeResults",
        "AsyncReader": "SyncReader",
        "AsyncResultLimits": "SyncResultLimits",
        "AsyncRunner": "SyncRunner",
        "AsyncStore": "SyncStore",
        "AsyncUploads": "SyncUploads",
        "__aiter__": "__iter__",
        "__anext__": "__next__",
        "aclose": "close",
        "anext": "next",
    },
    "client": {
        "AsyncArtifacts": "SyncArtifacts",
        "AsyncStore": "SyncStore",
        "AsyncCalls": "SyncCalls",
        "AsyncClient": "SyncClient",
        "AsyncIterator": "Iterator",
        "AsyncJobHandle": "SyncJobHandle",
        "AsyncJobs": "SyncJobs",
        "AsyncLive": "SyncLive",
        "AsyncRunner": "SyncRunner",
        "AsyncWorkflowHandle": "SyncWorkflowHandle",
        "AsyncWorkflows": "SyncWorkflows",
        "enqueue_on_async": "enqueue_on",
        "start_on_async": "start_on",
    },
    "handler": {
        "AbstractAsyncContextManager": "AbstractContextManager",
        "AnyIOBackend": "SyncBackend",
        "AsyncContent": "Content",
        "AsyncUploads": "SyncUploads",
        "AsyncBackend": "SyncBackend",
        "AsyncBaseTransport": "BaseTransport",
        "AsyncBody": "SyncBody",
        "AsyncByteStream": "SyncByteStream",
        "AsyncCall": "SyncCall",
        "AsyncClient": "Client",
        "AsyncConnectionPool": "ConnectionPool",
        "AsyncConnections": "SyncConnections",
        "AsyncGenerator": "Generator",
        "AsyncGrants": "SyncGrants",
        "AsyncIterator": "Iterator",
        "AsyncLargeResults": "SyncLargeResults",
        "AsyncLimitedTransport": "SyncLimitedTransport",
        "AsyncLink": "SyncLink",
        "AsyncNetwork": "SyncNetwork",
        "AsyncNetworkBackend": "NetworkBackend",
        "AsyncNetworkStream": "NetworkStream",
        "AsyncOnly": "SyncOnly",
        "AsyncResponse": "SyncResponse",
        "AsyncStepLink": "SyncStepLink",
        "AsyncSteps": "SyncSteps",
        "AsyncWire": "SyncWire",
        "Context": "SyncContext",
        "Grant": "SyncGrant",
        "GrantRequest": "SyncGrantRequest",
        "StepCalls": "SyncStepCalls",
        "Transaction": "SyncTransaction",
        "__aiter__": "__iter__",
        "aclose": "close",
        "aclosing": "closing",
        "aiter_bytes": "iter_bytes",
        "aread": "read",
        "call_function_async": "call_function",
        "dial_async": "dial",
        "handle_async_request": "handle_request",
        "sibling_async": "sibling",
    },
    "http_client": {
        "AsyncApiArtifacts": "SyncApiArtifacts",
        "AsyncApiClient": "SyncApiClient",
        "AsyncApiJobs": "SyncApiJobs",
        "AsyncApiWorkflows": "SyncApiWorkflows",
        "AsyncClient": "Client",
        "AsyncIterator": "Iterator",
        "aclose": "close",
    },
    "operate": {
        "AsyncArtifacts": "SyncArtifacts",
        "AsyncStore": "SyncStore",
        "AsyncStoredFiles": "SyncStoredFiles",
        "AsyncActivity": "SyncActivity",
        "AsyncBreakers": "SyncBreakers",
        "AsyncCaller": "SyncCaller",
        "AsyncDeadLetters": "SyncDeadLetters",
        "AsyncDuties": "SyncDuties",
        "AsyncEvents": "SyncEvents",
        "AsyncFollower": "SyncFollower",
        "AsyncIterator": "Iterator",
        "AsyncKeys": "SyncKeys",
        "AsyncLimits": "SyncLimits",
        "AsyncLog": "SyncLog",
        "AsyncLooks": "SyncLooks",
        "AsyncOperatedJobs": "SyncOperatedJobs",
        "AsyncOperatedWorkflows": "SyncOperatedWorkflows",
        "AsyncOperator": "SyncOperator",
        "AsyncQueues": "SyncQueues",
        "AsyncQuotas": "SyncQuotas",
        "AsyncSchedules": "SyncSchedules",
        "AsyncSession": "SyncSession",
        "AsyncSettings": "SyncSettings",
        "AsyncTasks": "SyncTasks",
        "AsyncWorkers": "SyncWorkers",
    },
}
_TEXTS = {
    "asyncio.sleep": "time.sleep",
    "import asyncio\n": "",
    "  # noqa: ASYNC109 - it bounds the wait, not the job": "",
    "  # noqa: ASYNC109 - see AsyncJobs": "",
    "  # noqa: ASYNC109 - as in httpcore2": "",
    "  # noqa: ASYNC109": "",
    "`async with ctx.grant(": "`with ctx.grant(",
    "The job that an `async def` handler runs": "The job that a plain `def` handler runs",
    "annotated `Context`. Plain handlers take `SyncContext`.": (
        "annotated `SyncContext`. `async def` handlers take `Context`."
    ),
}
_HEADER = "# Generated by tools/async_to_sync.py from {}; do not edit.\n"
_PACKAGE_TEXT = '"""Blocking twins. Generated from `trunkline.{}._async`."""\n'


def generate() -> dict[Path, str]:
    """The files and what they should contain."""
    found = {}
    for room, own in _NAMES.items():
        for source in sorted((PACKAGE / room / "_async").glob("*.py")):
            name = source.relative_to(PACKAGE.parent).as_posix()
            text = _PACKAGE_TEXT.format(room)
            if source.stem != "__init__":
                text = convert(source.read_text("utf-8"), {**_EVERYWHERE, **own})
            target = PACKAGE / room / "_sync" / source.name
            found[target] = _formatted(_HEADER.format(name) + text, target)
    return found


def convert(text: str, names: Mapping[str, str]) -> str:
    """The blocking twin of a module."""
    for old, new in _TEXTS.items():
        text = text.replace(old, new)
    words = []
    last = (1, 0)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.start[0] > last[0]:
            last = (token.start[0], 0)
        gap = token.line[last[1] : token.start[1]] if token.start > last else ""
        last = token.end
        if token.type == tokenize.NAME and token.string in {"async", "await"}:
            # The expression after the keyword replaces both.
            last = (last[0], last[1] + 1)
            words.append(gap)
            continue
        words.append(gap + _twin(token.string, names))
    return "".join(words)


def _twin(word: str, names: Mapping[str, str]) -> str:
    if word[:1] == '"' and word.strip('"') in names:
        return f'"{names[word.strip(chr(34))]}"'
    return names.get(word, word)


def _formatted(text: str, target: Path) -> str:
    # Lines are shorter than in the source, so they have to be formatted again.
    command = [sys.executable, "-m", "ruff"]
    for arguments in (
        ["check", "--select", "I,RUF022,UP028", "--fix", "--unsafe-fixes", "-q", "-"],
        ["format", "-q", "-"],
    ):
        text = subprocess.run(
            [*command, *arguments, "--stdin-filename", str(target)],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


if __name__ == "__main__":
    for path, content in generate().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, "utf-8")
