-- The registry of job types, the only place that defines what may be enqueued, what it calls and what comes next.
-- requires: base, configuration, limits
-- source: 4

create table if not exists clinical.job_types (
  job_type text primary key check (job_type ~ '^[a-z][a-z0-9_]{0,99}$'),
  provider_name text,
  api_endpoint text,
  is_first_stage boolean not null default false,
  next_stage text references clinical.job_types (job_type) deferrable initially deferred,
  -- The configuration key that switches the stage on; null: it always belongs to the pipeline.
  optional text,
  needs_file boolean not null default false,
  max_retries integer not null default 3 check (max_retries between 0 and 1000),
  -- Null: worker.timeout_seconds.
  lease interval check (lease >= interval '3 seconds'),
  hard_limit interval not null default interval '4 hours',
  constraint job_types_endpoint foreign key (provider_name, api_endpoint)
    references clinical.api_endpoints (provider_name, api_endpoint) match full
);
-- Views of jobs and of the audit join this table, so rows are never deleted; an unwanted type is deactivated.
alter table clinical.job_types add column if not exists is_active boolean not null default true;
comment on table clinical.job_types is 'Job types with the endpoint they call, their place in the pipeline and their budget. To add a type, insert a row. Rows are deactivated, never deleted.';

create or replace function clinical.required_job_types()
returns text[]
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  -- The second and third pass have separate switches in the configuration.
  select array['fast_queue_security', 'fast_queue_ocr', 'fast_queue_spatial', 'ai_queue_pass1', 'audit_cleanup', 'system_maintenance']
$$;
comment on function clinical.required_job_types() is 'Returns the types that uploads and the audit depend on, which cannot be deactivated.';

create or replace function clinical.keep_job_types()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
  v_type text;
begin
  -- Runs after the statement and over all rows, so that a rename shows up as a missing type.
  if tg_op in ('DELETE', 'TRUNCATE') then
    v_problem := 'a job type is deactivated, not deleted';
  elsif tg_op = 'UPDATE' then
    select o.job_type into v_type
    from old_types as o
    where not exists (select from clinical.job_types as t where t.job_type = o.job_type)
    limit 1;
    if found then
      v_problem := 'a job type keeps its name';
    end if;
  end if;
  if v_problem is null then
    select r.job_type into v_type
    from unnest(clinical.required_job_types()) as r (job_type)
    where exists (select from clinical.job_types as t where t.job_type = r.job_type and not t.is_active)
    limit 1;
    if found then
      v_problem := 'a job type that uploads or the audit depend on stays active';
    elsif not exists (select from clinical.job_types as t where t.is_first_stage and t.is_active) then
      v_problem := 'uploads need an active type with is_first_stage';
    end if;
  end if;
  if v_problem is not null then
    perform clinical.refuse(
      p_code => 'job_type_kept', p_message => v_problem, p_detail => jsonb_build_object('operation', tg_op, 'job_type', v_type)
    );
  end if;
  return null;
end;
$$;
comment on function clinical.keep_job_types() is 'Refuses to delete or rename a job type, to deactivate a required one, and to leave uploads without a first stage.';

alter table clinical.job_types enable row level security;
alter table clinical.job_types force row level security;
drop policy if exists service_only on clinical.job_types;
create policy service_only on clinical.job_types
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create or replace function clinical.register_job_types()
returns integer
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select trunkline.register_tasks(p_tasks => coalesce(jsonb_agg(
    jsonb_build_object(
      'task', t.job_type, 'queue', 'clinical', 'profile', 'clinical', 'audit', true, 'priority', 5,
      'lease', coalesce(t.lease, make_interval(secs => clinical.configured(p_key => 'worker.timeout_seconds')::integer)),
      'hard_limit', t.hard_limit, 'max_attempts', t.max_retries + 1, 'crash_limit', t.max_retries + 1,
      'backoff', jsonb_build_object('base', 30, 'factor', 2, 'cap', 3600, 'jitter', 0.2),
      -- Timeouts of this profile are exact: a job is lost at its timeout, not when its worker dies.
      'reclaim_on_worker_death', false, 'lost_backoff', false,
      'limits', case when t.api_endpoint is null then '[]'::jsonb else jsonb_build_array(t.provider_name || '/' || t.api_endpoint) end
    )
  ), '[]'::jsonb))
  from clinical.job_types as t
$$;
comment on function clinical.register_job_types() is 'Registers the policy of every type with the engine; returns how many were new or changed.';

create or replace function clinical.job_types_changed()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform clinical.register_job_types();
  return null;
end;
$$;
comment on function clinical.job_types_changed() is 'Updates the engine''s tasks when the registry changes.';

drop trigger if exists job_types_changed on clinical.job_types;
create trigger job_types_changed
after insert or update on clinical.job_types
for each statement execute function clinical.job_types_changed();

drop trigger if exists keep_job_types on clinical.job_types;
create trigger keep_job_types
before delete or truncate on clinical.job_types
for each statement execute function clinical.keep_job_types();
drop trigger if exists keep_changed_job_types on clinical.job_types;
create trigger keep_changed_job_types
after update on clinical.job_types
referencing old table as old_types
for each statement execute function clinical.keep_job_types();

-- The earlier version returned one stage, which was enqueued when the one before it completed.
drop function if exists clinical.next_stage(text);

create or replace function clinical.stages(p_first text)
returns table (place bigint, job_type text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive chain (job_type, place, seen) as (
    select p_first, 1, array[p_first]
    union all
    select t.next_stage, c.place + 1, c.seen || t.next_stage
    from chain as c
    join clinical.job_types as t on t.job_type = c.job_type
    where t.next_stage <> all (c.seen)
  )
  select row_number() over (order by c.place), c.job_type
  from chain as c
  join clinical.job_types as t on t.job_type = c.job_type
  where c.place = 1 or (t.is_active and clinical.configured(p_key => t.optional) is distinct from 'false')
$$;
comment on function clinical.stages(text) is 'Returns this stage and those that follow it, in their order, without stages that are switched off or inactive.';

-- Insert only if missing: an installation keeps what an operator changed.
insert into clinical.job_types (job_type, provider_name, api_endpoint, is_first_stage, next_stage, optional, needs_file)
values
  ('fast_queue_security', null, null, true, 'fast_queue_ocr', null, true),
  ('fast_queue_ocr', 'google', 'vision-api', false, 'fast_queue_spatial', null, true),
  ('fast_queue_spatial', null, null, false, 'ai_queue_pass1', null, true),
  ('ai_queue_pass1', 'openai', 'gpt-4o-mini', false, 'ai_queue_pass2', null, true),
  ('ai_queue_pass2', 'openai', 'gpt-4o-mini', false, 'ai_queue_pass3', 'pipeline.pass2_enabled', true),
  ('ai_queue_pass3', 'openai', 'gpt-4o-mini', false, null, 'pipeline.pass3_enabled', true),
  ('audit_cleanup', null, null, false, null, null, false),
  ('notification_delivery', null, null, false, null, null, false),
  ('report_generation', null, null, false, null, null, false),
  ('backup_operation', null, null, false, null, null, false),
  ('system_maintenance', null, null, false, null, null, false),
  ('consent_verification', null, null, false, null, null, false)
on conflict (job_type) do nothing;

-- Also if no row was missing, because the engine may have been reinstalled.
do $register$
begin
  perform clinical.register_job_types();
end
$register$;
