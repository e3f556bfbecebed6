-- The registry of job types, the one place that says what may be enqueued, what it calls and what comes next.
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
comment on table clinical.job_types is 'Job types with the endpoint they call, their place in the pipeline and their budget; a row is all that a new type needs.';
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
      -- Times of this profile are exact: a job is lost at its timeout, not when its worker dies.
      'reclaim_on_worker_death', false, 'lost_backoff', false,
      'limits', case when t.api_endpoint is null then '[]'::jsonb else jsonb_build_array(t.provider_name || '/' || t.api_endpoint) end
    )
  ), '[]'::jsonb))
  from clinical.job_types as t
$$;
comment on function clinical.register_job_types() is 'Tells the engine the policy of every type; tells how many were new or changed.';

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
comment on function clinical.job_types_changed() is 'Keeps the engine''s tasks in step with the registry.';

drop trigger if exists job_types_changed on clinical.job_types;
create trigger job_types_changed
after insert or update on clinical.job_types
for each statement execute function clinical.job_types_changed();

create or replace function clinical.next_stage(p_job_type text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive stages (job_type, depth) as (
    select t.next_stage, 1 from clinical.job_types as t where t.job_type = p_job_type
    union all
    select t.next_stage, s.depth + 1
    from stages as s
    join clinical.job_types as t on t.job_type = s.job_type
    where clinical.configured(p_key => t.optional) = 'false' and s.depth < 100
  )
  select s.job_type
  from stages as s
  left join clinical.job_types as t on t.job_type = s.job_type
  where clinical.configured(p_key => t.optional) is distinct from 'false'
  order by s.depth
  limit 1
$$;
comment on function clinical.next_stage(text) is 'The stage that follows, past optional ones that are switched off; null after the last.';

-- Insert if missing: what an operator changed is kept at every installation.
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

-- Also when nothing was missing: the engine may have been installed anew.
do $register$
begin
  perform clinical.register_job_types();
end
$register$;
