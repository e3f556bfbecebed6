-- The audit: events about clinical data in a table that only grows, events about jobs from the engine, both in one view.
-- requires: base, patients, jobs
-- source: before 1 (existing table), 8

create table if not exists clinical.audit_entries (
  entry bigint generated always as identity primary key,
  at timestamptz not null,
  table_name text not null check (table_name <> ''),
  record_id text not null check (record_id <> ''),
  action text not null check (action in ('INSERT', 'UPDATE', 'DELETE', 'SELECT')),
  old_values jsonb,
  new_values jsonb,
  reason text not null check (reason <> ''),
  origin text not null,
  patient_id uuid,
  job_id uuid,
  actor text not null,
  -- For a copied event of the engine: its identity.
  kind text,
  attempt integer,
  xid xid8 not null default pg_current_xact_id()
);
create index if not exists audit_entries_by_record on clinical.audit_entries (record_id, table_name);
create index if not exists audit_entries_by_patient on clinical.audit_entries (patient_id, at);
create index if not exists audit_entries_by_time on clinical.audit_entries (at);
create unique index if not exists audit_entries_of_jobs on clinical.audit_entries (job_id, at, attempt, kind) where kind is not null;
comment on table clinical.audit_entries is 'Audit events that this profile stores itself; rows are only added, never changed or removed.';
alter table clinical.audit_entries enable row level security;
alter table clinical.audit_entries force row level security;
drop policy if exists service_only on clinical.audit_entries;
create policy service_only on clinical.audit_entries
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create or replace function clinical.refuse_audit_change()
returns trigger
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform clinical.refuse(p_code => 'not_writable', p_message => 'audit events are neither changed nor removed');
  return null;
end;
$$;
comment on function clinical.refuse_audit_change() is 'Refuses every change of written audit events, even by their owner.';
drop trigger if exists refuse_audit_change on clinical.audit_entries;
create trigger refuse_audit_change
before update or delete or truncate on clinical.audit_entries
for each statement execute function clinical.refuse_audit_change();

create or replace view clinical.audit_of_jobs with (security_barrier = true) as
select
  e.at,
  'job_queue'::text as table_name,
  e.job_id::text as record_id,
  case e.kind when 'enqueued' then 'INSERT' when 'discarded' then 'DELETE' else 'UPDATE' end as action,
  null::jsonb as old_values,
  case e.kind
    when 'enqueued' then jsonb_build_object('job_type', e.task, 'job_id', e.job_id, 'scheduled_at', e.detail -> 'run_at')
    when 'completed' then jsonb_build_object('status', 'completed', 'job_id', e.job_id, 'worker_id', e.worker)
    else jsonb_strip_nulls(jsonb_build_object(
      'status', clinical.job_status(p_state => e.to_state, p_reason => e.detail ->> 'reason'), 'job_id', e.job_id,
      'worker_id', e.worker, 'scheduled_at', e.detail -> 'run_at', 'error', e.detail -> 'error'
    ))
  end as new_values,
  concat_ws(': ', 'job ' || replace(e.kind, '_', ' '), e.detail ->> 'reason') as reason,
  'system'::text as origin,
  clinical.as_uuid(p_text => e.tenant) as patient_id,
  e.job_id,
  e.actor,
  e.kind,
  e.attempt
from trunkline.events as e
join clinical.job_types as t on t.job_type = e.task;
comment on view clinical.audit_of_jobs is 'Events of the engine about jobs of this profile, with the names of the audit; each was written in the transaction of its change.';

create or replace view clinical.audit_log with (security_barrier = true) as
select
  a.at, a.table_name, a.record_id, a.action, a.old_values, a.new_values, a.reason, a.origin, a.patient_id, a.job_id, a.actor,
  a.kind, a.attempt
from clinical.audit_entries as a
union all
select
  e.at, e.table_name, e.record_id, e.action, e.old_values, e.new_values, e.reason, e.origin, e.patient_id, e.job_id, e.actor,
  e.kind, e.attempt
from clinical.audit_of_jobs as e
-- Compares rows instead of a high-water time, so that no argument of keep_audit can hide an event.
where not exists (
  select
  from clinical.audit_entries as a
  where a.job_id = e.job_id and a.at = e.at and a.attempt = e.attempt and a.kind = e.kind
);
comment on view clinical.audit_log is 'The audit: every write of clinical data and every change of a job, with its patient.';

drop table if exists clinical.audit_kept;

-- The engine calls it before it drops a partition of events.
create or replace function clinical.keep_events(p_before timestamptz)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count bigint;
begin
  -- Copies all events that are missing: a long transaction may commit an event days after its timestamp.
  insert into clinical.audit_entries (
    at, table_name, record_id, action, old_values, new_values, reason, origin, patient_id, job_id, actor, kind, attempt
  )
  select
    e.at, e.table_name, e.record_id, e.action, e.old_values, e.new_values, e.reason, e.origin, e.patient_id, e.job_id, e.actor,
    e.kind, e.attempt
  from clinical.audit_of_jobs as e
  where e.at < p_before
    and not exists (
      select
      from clinical.audit_entries as a
      where a.job_id = e.job_id and a.at = e.at and a.attempt = e.attempt and a.kind = e.kind
    )
  on conflict do nothing;
  get diagnostics v_count = row_count;
  return v_count;
end;
$$;
comment on function clinical.keep_events(timestamptz) is 'Copies events about jobs before this time into the audit permanently; returns how many.';

create or replace function clinical.keep_audit(p_older_than interval default interval '1 hour')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_older_than is null or p_older_than < interval '0' or p_older_than > interval '1 day' then
    perform clinical.refuse(
      p_code => 'invalid_argument', p_message => format('p_older_than must be between 0 and 1 day, not %L', p_older_than),
      p_detail => jsonb_build_object('argument', 'p_older_than', 'minimum', '0', 'maximum', '1 day')
    );
  end if;
  return clinical.keep_events(p_before => trunkline.clock() - p_older_than);
end;
$$;
comment on function clinical.keep_audit(interval) is 'Copies events about jobs into the audit permanently, before the engine''s retention ends; the task audit_cleanup calls it. Returns how many.';

create or replace function clinical.write_audit(
  p_table_name text,
  p_record_id text,
  p_action text,
  p_old_values jsonb default null,
  p_new_values jsonb default null,
  p_reason text default null,
  p_origin text default 'system',
  p_patient_id uuid default null,
  p_job_id uuid default null
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_entry bigint;
begin
  if p_patient_id is null and p_table_name not in ('system_configuration', 'api_rate_limits', 'rollout_results') then
    perform clinical.refuse(
      p_code => 'patient_missing', p_message => 'an audit event about clinical data names its patient',
      p_detail => jsonb_build_object('table', p_table_name, 'record', p_record_id)
    );
  end if;
  insert into clinical.audit_entries (
    at, table_name, record_id, action, old_values, new_values, reason, origin, patient_id, job_id, actor
  )
  values (
    trunkline.clock(), p_table_name, p_record_id, p_action, p_old_values, p_new_values,
    coalesce(p_reason, lower(p_action) || ' of ' || p_table_name), coalesce(p_origin, 'system'), p_patient_id, p_job_id, session_user
  )
  returning entry into v_entry;
  return v_entry;
end;
$$;
comment on function clinical.write_audit(text, text, text, jsonb, jsonb, text, text, uuid, uuid) is 'Writes one audit event for a function of this profile, in the transaction of the change it describes; refuses an event about clinical data without a patient.';

create or replace function clinical.require_audit()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row jsonb := case tg_op when 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
begin
  if not exists (
    select
    from clinical.audit_entries as a
    where a.record_id = v_row ->> 'id'
      and a.table_name = tg_table_name
      and a.patient_id::text = v_row ->> 'patient_id'
      -- A row that this transaction inserted may be changed by it without a second event.
      and a.action in (tg_op, 'INSERT')
      and a.xid = pg_current_xact_id()
      -- In a restored database an old event may have this transaction's id, but its row was written earlier.
      and age(a.xmin) <= 0
  ) then
    perform clinical.refuse(
      p_code => 'audit_missing', p_message => format('%s of %s %s without an audit event', lower(tg_op), tg_table_name, v_row ->> 'id'),
      p_detail => jsonb_build_object('table', tg_table_name, 'record', v_row ->> 'id', 'patient', v_row ->> 'patient_id')
    );
  end if;
  return null;
end;
$$;
comment on function clinical.require_audit() is 'Refuses, at the end of the transaction, a write of clinical data that has no audit event with its patient in the same transaction.';

create or replace function clinical.audit_removal()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row jsonb := to_jsonb(old);
begin
  perform clinical.write_audit(
    p_table_name => tg_table_name::text, p_record_id => v_row ->> 'id', p_action => 'DELETE', p_old_values => v_row,
    p_patient_id => (v_row ->> 'patient_id')::uuid
  );
  return old;
end;
$$;
comment on function clinical.audit_removal() is 'Writes the audit event of a removed row, also if its patient is removed.';
