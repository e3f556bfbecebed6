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
    """The handlers, on what they work with."""

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
        # How many programs may read documents at once: each may use its full memory limit.
        self._children = asyncio.Semaphore(max(2, os.cpu_count() or 1))

    async def fast_queue_security(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Let a file into the pipeline, or not."""
        with at_work(ctx):
            patient = patient_of(ctx)
            path, facts = await stored_file(ctx)
            data = await asyncio.to_thread(self._files.read, patient, path)
            async with self._children:
                found = asdict(await security.screen(data, facts))
            leave = self._leaving(ctx, patient, shell_file_id, found | {"path": path})
            return await finish(ctx, Outcome("screening", found, leave=leave))

    async def fast_queue_ocr(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Read the pages."""
        with at_work(ctx):
            patient = patient_of(ctx)
            screened = await self._left(patient, shell_file_id, "fast_queue_security")
            data = await asyncio.to_thread(self._files.read, patient, screened["path"])
            found = await asyncio.to_thread(security.identify, data)
            if found.sha256 != screened["sha256"]:
                raise BadDocument("The file is not the one that was checked")
            async with self._children:
                tables = await ocr.read(self._tools, found.kind, data)
            leave = self._leaving(ctx, patient, shell_file_id, {"tables": tables})
            # Read on this host: no tokens of a provider were used.
            facts = {"pages": len(tables), "tokens_used": 0}
            return await finish(ctx, Outcome("pages", facts, leave=leave))

    async def fast_queue_spatial(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Find lines and their places."""
        with at_work(ctx):
            patient = patient_of(ctx)
            read = await self._left(patient, shell_file_id, "fast_queue_ocr")
            found = await asyncio.to_thread(spatial.layout, read["tables"])
            if not found.words:
                raise BadDocument("There is no text on any page")
            leave = self._leaving(ctx, patient, shell_file_id, found)
            facts = {
                "pages": len(found.pages),
                "words": found.words,
                "confidence": found.confidence,
            }
            return await finish(ctx, Outcome("layout", facts, leave=leave))

    async def ai_queue_pass1(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 1000,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Find what the document names."""
        return await self._pass(ctx, shell_file_id, estimated_tokens, endpoint)

    async def ai_queue_pass2(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 1000,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Make clinical facts of it."""
        return await self._pass(ctx, shell_file_id, estimated_tokens, endpoint)

    async def ai_queue_pass3(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 1000,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Tell the patient."""
        return await self._pass(ctx, shell_file_id, estimated_tokens, endpoint)

    async def _pass(
        self, ctx: Context, file: UUID, estimate: int, endpoint: str | None
    ) -> dict[str, Any]:
        asked = PASSES[ctx.task]
        with at_work(ctx):
            if endpoint is None:
                raise BadDocument(f"The registry named no endpoint for {ctx.task}")
            name, _, model = endpoint.partition("/")
            provider = self._providers.get(name)
            if provider is None:
                # Another worker may know it; nothing is wrong with the document.
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
        """For the stages that follow."""
        data, path = msgspec.json.encode(value), left_by(patient, file, ctx.task)

        async def leave() -> None:
            await asyncio.to_thread(self._files.write, patient, path, data)

        return leave

    async def _left(self, patient: UUID, file: UUID, stage: str) -> dict[str, Any]:
        path = left_by(patient, file, stage)
        found: dict[str, Any] = msgspec.json.decode(
            await asyncio.to_thread(self._files.read, patient, path)
        )
        return found
