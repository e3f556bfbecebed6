-- why: complete must know whether the worker has received the cancel request; from then on the job ends cancelled
-- breaking: no

alter table trunkline_internal.running add column cancel_answered_at timestamptz;
comment on column trunkline_internal.running.cancel_answered_at is 'When a heartbeat or progress call first returned cancel for this attempt; from then on complete ends it cancelled.';

insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values ('running', 'cancelled', 'complete');

-- Gets one more argument, which create or replace cannot add.
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.unmatched_verdicts(text, uuid[], integer[], uuid[], boolean);
