"""Refused calls about artifacts, as in `cases`; jobs without a tenant have 10 bytes."""

from __future__ import annotations

from typing import Final

from tests.integration.bad_input.calling import NOBODY, OPERATOR, PRODUCER, WORKER, by

__all__ = ["ARTIFACT_CALLS", "BAD_ELEMENTS"]

_BEGIN = "trunkline.begin_artifact('w', <running>, 1, {})"
_STAGE = "trunkline.stage_artifact('w', <running>, 1, 'x', {})"
_ELEMENTS = f"trunkline.stage_elements('w', <running>, 1, {NOBODY}, {{}})"
_HASH = "repeat('0', 64)"

BAD_ELEMENTS: Final = by(
    WORKER,
    _ELEMENTS.format("null"),
    _ELEMENTS.format("-1"),
    _ELEMENTS.format("1, 5"),
    _ELEMENTS.format("1, 0, null"),
    _ELEMENTS.format("1, 0, '7'"),
    _ELEMENTS.format("2000, 0, (select jsonb_agg(n) from generate_series(1, 1001) as n)"),
)

ARTIFACT_CALLS: Final[dict[str, list[tuple[str, str]]]] = {
    "unknown_artifact": [
        *by(
            PRODUCER,
            f"trunkline.artifact({NOBODY})",
            "trunkline.artifact(null)",
            f"trunkline.delete_artifact({NOBODY})",
        ),
        *by(OPERATOR, f"trunkline.delete_artifact({NOBODY})"),
        *by(
            WORKER,
            f"trunkline.artifact_upload('w', <running>, 1, {NOBODY})",
            f"trunkline.reserve_storage('w', <running>, 1, {NOBODY}, 1)",
            f"trunkline.stage_elements('w', <running>, 1, {NOBODY}, 1)",
        ),
    ],
    "invalid_artifact": by(
        WORKER,
        _BEGIN.format("null"),
        _BEGIN.format("''"),
        _BEGIN.format("'a/b'"),
        _BEGIN.format("'..'"),
        _BEGIN.format("repeat('x', 201)"),
        _BEGIN.format("'x', p_kind => 'A Song'"),
        _BEGIN.format("'x', p_content_type => 'audio'"),
        _BEGIN.format("'x', p_step => ''"),
        _BEGIN.format("'x', p_step => 'x', p_step_key => ''"),
        _BEGIN.format("'x', p_bytes => -1"),
        _STAGE.format(f"-1, {_HASH}"),
        _STAGE.format("1, 'no hash'"),
        _STAGE.format(f"1, {_HASH}, p_duration => -1"),
        # The path of no upload.
        _STAGE.format(f"1, {_HASH}"),
    ),
    "storage_quota_exceeded": by(WORKER, _BEGIN.format("'x', p_bytes => 11")),
}
