"""Refused calls about steps and events, as in `cases`."""

from __future__ import annotations

from typing import Final

from tests.integration.bad_input.calling import LARGE, OPERATOR, PRODUCER, WORKER, by

__all__ = ["STEP_CALLS"]

_RECORD = (
    "trunkline.record_steps('w', array[<running>], '{{1}}',"
    " '{{{}}}', '{{a}}', '{{#1}}', '{{0}}', {})"
)

STEP_CALLS: Final[dict[str, list[tuple[str, str]]]] = {
    "event_mismatch": [
        *by(
            PRODUCER,
            """trunkline.send_event('e', (trunkline.send_event('e', '1', <ready>,
              p_event_id => 'x')).resumed::text::jsonb, <ready>, p_event_id => 'x')""",
        ),
    ],
    "event_too_large": [*by(PRODUCER, f"trunkline.send_event('e', {LARGE}, p_key => 'k')")],
    "step_too_large": [*by(WORKER, _RECORD.format(1, f"array[{LARGE}]"))],
    "too_many_steps": [*by(WORKER, _RECORD.format(10001, "array['1'::jsonb]"))],
    "unknown_recorded_step": [*by(OPERATOR, "trunkline.reset_step(<ready>, 'a')")],
}
