-- why: an idempotency key that came back with another payload, and a unique key of another task, returned the wrong job
-- breaking: no

alter table trunkline_internal.idempotency_keys add column payload_hash bigint;
comment on column trunkline_internal.idempotency_keys.payload_hash is 'Hash of the first request''s payload. Null for keys from before this column: they match any payload.';

alter table trunkline_internal.unique_keys add column task text not null default '';
comment on column trunkline_internal.unique_keys.task is 'The task that the key counts for. Empty in a profile, where a key counts for all its tasks.';
update trunkline_internal.unique_keys as k
set task = l.task
from (
  select w.job_id, w.task from trunkline_internal.waiting as w where w.unique_key is not null
  union all
  select r.job_id, r.task from trunkline_internal.running as r where r.unique_key is not null
) as l
where l.job_id = k.job_id and k.profile = 'default';
-- A key without a live job holds nothing.
delete from trunkline_internal.unique_keys as k where k.profile = 'default' and k.task = '';
-- The check refuses the key of a request that waited for this upgrade and still runs the previous functions: they would
-- overlook the live job that holds it.
-- squawk-ignore-file ban-drop-constraint, constraint-missing-not-valid, adding-serial-primary-key-field, ban-drop-function
alter table trunkline_internal.unique_keys
drop constraint unique_keys_pkey,
add constraint unique_keys_pkey primary key (profile, tenant, task, unique_key),
add constraint unique_keys_scope check ((profile = 'default') = (task <> ''));

-- They get one more argument, which create or replace cannot add.
drop function if exists trunkline_internal.hold_unique_key(text, text, text, uuid);
drop function if exists trunkline_internal.known_answer(text, text, text, uuid, timestamptz, timestamptz);
