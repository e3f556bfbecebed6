"""The six stages of a document, each on its own job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

import msgspec

from trunkline import Context
from trunkline_profiles.clinical.handlers import ocr, security, spatial
from trunkline_profiles.clinical.handlers.ending import (
    Outcome,
    at_work,
    finish,
    patient_of,
    stored_file,
)
from trunkline_profiles.clinical.handlers.files import Files, left_by
from trunkline_profiles.clinical.handlers.passes import PASSES, answered, as_text
from trunkline_profiles.clinical.handlers.problems import BadDocument, StageProblem
from trunkline_profiles.clinical.handlers.providers import Provider
from trunkline_profiles.clinical.handlers.tools import Tools

__all__ = ["Stages"]


class Stages:
    """The handlers, with their services."""

    def __init__(
        self,
        files: Files,
        tools: Tools,
        providers: Mapping[str, Provider],
        *,
        timeout: float,
    ) -> None:
        self._files = files
        self._tools = tools
        self._providers = providers
        self._timeout = timeout
        # How many programs may read documents at once, because each may use its full memory limit.
        self._children = asyncio.Semaphore(max(2, os.cpu_count() or 1))

    async def fast_queue_security(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Check a file, and refuse it if it is unsafe."""
        with at_work(ctx):
            patient = patient_of(ctx)
            path, facts = await stored_file(ctx)
            data = await asyncio.to_thread(self._files.read, patient, path)
            async with self._children:
                screening = asdict(await security.screen(data, facts))
            leave = self._leaving(ctx, patient, shell_file_id, screening | {"path": path})
            return await finish(ctx, Outcome("screening", screening, leave=leave))

    async def fast_queue_ocr(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Read the pages by OCR."""
        with at_work(ctx):
            patient = patient_of(ctx)
            screened = await self._left(patient, shell_file_id, "fast_queue_security")
            data = await asyncio.to_thread(self._files.read, patient, screened["path"])
            screening = await asyncio.to_thread(security.identify, data)
            if screening.sha256 != screened["sha256"]:
                raise BadDocument("The file is not the one that was checked")
            async with self._children:
                tables = await ocr.read(self._tools, screening.kind, data)
            leave = self._leaving(ctx, patient, shell_file_id, {"tables": tables})
            # The OCR runs on this host and uses no tokens.
            facts = {"pages": len(tables), "tokens_used": 0}
            return await finish(ctx, Outcome("pages", facts, leave=leave))

    async def fast_queue_spatial(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Extract lines and their positions."""
        with at_work(ctx):
            patient = patient_of(ctx)
            read = await self._left(patient, shell_file_id, "fast_queue_ocr")
            layout = await asyncio.to_thread(spatial.layout, read["tables"])
            if not layout.words:
                raise BadDocument("There is no text on any page")
            leave = self._leaving(ctx, patient, shell_file_id, layout)
            facts = {
                "pages": len(layout.pages),
                "words": layout.words,
                "confidence": layout.confidence,
            }
            return await finish(ctx, Outcome("layout", facts, leave=leave))

    async def ai_queue_pass1(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 1000,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Extract the entities that the document names."""
        return await self._pass(ctx, shell_file_id, estimated_tokens, endpoint)

    async def ai_queue_pass2(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 1000,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Derive clinical facts from the entities."""
        return await self._pass(ctx, shell_file_id, estimated_tokens, endpoint)

    async def ai_queue_pass3(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 1000,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Write a summary for the patient."""
        return await self._pass(ctx, shell_file_id, estimated_tokens, endpoint)

    async def _pass(
        self, ctx: Context, file: UUID, estimate: int, endpoint: str | None
    ) -> dict[str, Any]:
        asked = PASSES[ctx.task]
        with at_work(ctx):
            if endpoint is None:
                raise BadDocument(f"The registry has no endpoint for {ctx.task}")
            name, _, model = endpoint.partition("/")
            provider = self._providers.get(name)
            if provider is None:
                # Another worker may know it; the document is not at fault.
                raise StageProblem(f"This worker does not know the provider {name}")
            patient = patient_of(ctx)
            text = as_text(await self._left(patient, file, asked.reads))
            response = await ctx.http_client(limit=endpoint, tokens=estimate).post(
                provider.address("chat/completions"),
                json=asked.request(model, text),
                headers=provider.headers,
                timeout=self._timeout,
            )
            answer = answered(asked, response.raise_for_status().json())
            leave = self._leaving(ctx, patient, file, answer.value)
            result: dict[str, Any] = {"found": asked.record, "endpoint": endpoint}
            if answer.tokens_used is not None:
                result["tokens_used"] = answer.tokens_used
            return await finish(ctx, Outcome(asked.record, answer.value, result, leave))

    def _leaving(
        self, ctx: Context, patient: UUID, file: UUID, value: Any
    ) -> Callable[[], Awaitable[None]]:
        """Store results for the following stages."""
        data, path = msgspec.json.encode(value), left_by(patient, file, ctx.task)

        async def leave() -> None:
            await asyncio.to_thread(self._files.write, patient, path, data)

        return leave

    async def _left(self, patient: UUID, file: UUID, stage: str) -> dict[str, Any]:
        path = left_by(patient, file, stage)
        result: dict[str, Any] = msgspec.json.decode(
            await asyncio.to_thread(self._files.read, patient, path)
        )
        return result
