"""The job types outside the pipeline: scheduled by operators, or notifying other services."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from uuid import UUID

from trunkline import Context
from trunkline_profiles.clinical.handlers.ending import (
    Outcome,
    ask,
    at_work,
    finish,
    patient_of,
    stored_file,
)
from trunkline_profiles.clinical.handlers.files import Files
from trunkline_profiles.clinical.handlers.problems import BadDocument, StageProblem
from trunkline_profiles.clinical.handlers.providers import Provider

__all__ = ["Chores"]

_RECORDS: Final = """
select r.stage, r.record_kind, r.body
from clinical.stage_records(p_job => %(job)s, p_attempt => %(attempt)s, p_worker => %(worker)s) as r
order by r.stage, r.record_kind, r.record_key
"""


class Chores:
    """The handlers, with their services."""

    # The service that a type needs, by its name in the environment.
    NEEDS: ClassVar[Mapping[str, str]] = {
        "notification_delivery": "notifications",
        "consent_verification": "consent",
    }
    PROVIDERS: ClassVar[frozenset[str]] = frozenset(NEEDS.values())

    def __init__(
        self,
        files: Files,
        backup: Files | None,
        providers: Mapping[str, Provider],
        *,
        timeout: float,
    ) -> None:
        self._files = files
        self._backup = backup
        self._providers = providers
        self._timeout = timeout

    async def audit_cleanup(
        self,
        ctx: Context,
        older_than: str = "1 hour",
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Copy events about jobs into the audit before the engine drops them."""
        with at_work(ctx):
            async with ctx.transaction() as connection:
                query = "select clinical.keep_audit(p_older_than => %s::interval)"
                row = await (await connection.execute(query, (older_than,))).fetchone()
                ctx.result = found = {"kept": row[0]}
                return found

    async def system_maintenance(
        self, ctx: Context, limit: int = 100, estimated_tokens: int = 0, endpoint: str | None = None
    ) -> dict[str, Any]:
        """Record at files that their pipeline has stopped."""
        with at_work(ctx):
            async with ctx.transaction() as connection:
                query = "select clinical.note_stopped_files(p_limit => %s)"
                row = await (await connection.execute(query, (limit,))).fetchone()
                ctx.result = found = {"files": row[0]}
                return found

    async def report_generation(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Write all records of a file into one report in the patient's folder."""
        with at_work(ctx):
            patient = patient_of(ctx)
            async with ctx.transaction() as connection:
                rows = await (await ask(ctx, connection, _RECORDS)).fetchall()
                if not rows:
                    raise BadDocument(f"File {shell_file_id} has no records")
                records = [
                    {"stage": stage, "kind": kind, "body": body} for stage, kind, body in rows
                ]
                data = json.dumps(
                    {"file": str(shell_file_id), "records": records}, indent=1
                ).encode()
                path = f"{patient}/{shell_file_id}/report.json"
                await asyncio.to_thread(self._files.write, patient, path, data)
                ctx.result = found = {"path": path, "records": len(records)}
                return found

    async def backup_operation(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Copy an uploaded file, and verify the copy."""
        with at_work(ctx):
            path, _ = await stored_file(ctx)
            digest = await asyncio.to_thread(self._copy, patient_of(ctx), path)
            return {"path": path, "sha256": digest}

    async def notification_delivery(
        self,
        ctx: Context,
        shell_file_id: UUID,
        message: str,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Notify the service that delivers messages; it uses the job's id to deliver only once."""
        with at_work(ctx):
            answer = await self._ask(ctx, shell_file_id, {"message": message})
            return {"delivered": True, "answer": answer}

    async def consent_verification(
        self,
        ctx: Context,
        shell_file_id: UUID,
        estimated_tokens: int = 0,
        endpoint: str | None = None,
    ) -> dict[str, Any]:
        """Ask whether the patient consents, and store the response with the file."""
        with at_work(ctx):
            answer = await self._ask(ctx, shell_file_id, {})
            if not isinstance(answer, dict) or not isinstance(answer.get("consent"), bool):
                raise StageProblem("The response does not state whether there is consent")
            record = {"consent": answer["consent"]}
            return await finish(ctx, Outcome("consent", record))

    async def _ask(self, ctx: Context, file: UUID, more: dict[str, Any]) -> Any:
        provider = self._providers[self.NEEDS[ctx.task]]
        response = await ctx.http_client(limit=False).post(
            provider.url,
            json={"patient_id": ctx.tenant, "shell_file_id": str(file), **more},
            headers=provider.headers | {"Idempotency-Key": str(ctx.job_id)},
            timeout=self._timeout,
        )
        return response.raise_for_status().json()

    def _copy(self, patient: UUID, path: str) -> str:
        assert self._backup is not None  # noqa: S101 - otherwise the type is not served
        data = self._files.read(patient, path)
        self._backup.write(patient, path, data)
        digest = hashlib.sha256(data).hexdigest()
        if hashlib.sha256(self._backup.read(patient, path)).hexdigest() != digest:
            raise StageProblem(f"The copy of {path} differs from the file")
        return digest
