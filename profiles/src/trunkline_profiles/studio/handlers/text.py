"""Texts by a model behind HTTP: the request, and the parsing of its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from trunkline_profiles.studio.handlers.chapter import Chapter
from trunkline_profiles.studio.handlers.problems import StudioProblem

if TYPE_CHECKING:
    import httpx2

__all__ = ["KEY_HEADER", "LIMIT", "Assignment", "ModelWriter", "Writer"]

# The limit that calls are charged to, a row of the database.
LIMIT: Final = "studio-model"
# A provider that supports it answers a repeated request without doing it, or charging it, again.
KEY_HEADER: Final = "Idempotency-Key"
# An answer is longer than its request.
_TOKENS: Final = 1500


class _Text(msgspec.Struct, frozen=True):
    paragraphs: list[str]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What to write."""

    title: str
    # The charts as lines.
    charts: str
    language: str = "en"


class Writer(Protocol):
    """An adapter for a text model."""

    @property
    def tokens(self) -> int:
        """The estimate of one call, for its limit."""
        ...

    async def write(self, client: httpx2.AsyncClient, assignment: Assignment, key: str) -> Chapter:
        """Return the text. The key is the same for all attempts of a task."""
        ...


@dataclass(frozen=True, slots=True)
class ModelWriter:
    """A model with the API of OpenAI."""

    url: str
    model: str = "gpt-4o-mini"
    secret: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    tokens: int = _TOKENS

    async def write(self, client: httpx2.AsyncClient, assignment: Assignment, key: str) -> Chapter:
        """Return the text of one document."""
        headers = {KEY_HEADER: key}
        if self.secret is not None:
            headers["Authorization"] = f"Bearer {self.secret}"
        response = await client.post(
            f"{self.url.rstrip('/')}/chat/completions",
            headers=headers,
            json=self._request(assignment),
            timeout=self.timeout,
        )
        if response.status_code != 200:
            raise StudioProblem(f"The model answered {response.status_code}")
        return Chapter(assignment.title, _paragraphs(response.content))

    def _request(self, assignment: Assignment) -> dict[str, Any]:
        return {
            "model": self.model,
            "temperature": 0,
            "messages": [
                {
                    "role": "system",
                    "content": f"Write the chapter {assignment.title!r} of a report about two"
                    f" people, in the language {assignment.language}, from their charts.",
                },
                {"role": "user", "content": assignment.charts},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "chapter", "schema": msgspec.json.schema(_Text)},
            },
        }


def _paragraphs(body: bytes) -> list[str]:
    try:
        content = msgspec.json.decode(body)["choices"][0]["message"]["content"]
        paragraphs = msgspec.json.decode(str(content), type=_Text).paragraphs
    except (msgspec.DecodeError, KeyError, IndexError, TypeError) as error:
        raise StudioProblem(f"The model's answer is no chapter: {error}") from error
    if not any(paragraph.strip() for paragraph in paragraphs):
        raise StudioProblem("The model's answer is empty")
    return paragraphs
