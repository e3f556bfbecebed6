-- Jobs with the names of the source system: the rule for statuses, the details of errors, and the view job_queue.
-- requires: base, job_types
-- source: 3, 5

create table if not exists clinical.imported_jobs (
  old_id text primary key,
  job_id uuid not null unique,
  old_status text not null,
  retry_count integer not null,
  imported_at timestamptz not null default clock_timestamp()
);
comment on table clinical.imported_jobs is 'Jobs imported from the older table: their new ids, and the retries they had used there.';

-- Jobs themselves are in the engine's tables, where row security is forced, too.
alter table clinical.imported_jobs enable row level security;
alter table clinical.imported_jobs force row level security;
drop policy if exists job_queue_service_role_only on clinical.imported_jobs;
create policy job_queue_service_role_only on clinical.imported_jobs
to trunkline_owner, trunkline_producer, trunkline_operator using (true) with check (true);

create or replace function clinical.job_status(p_state text, p_reason text default null)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_state in ('running', 'processing') then 'processing'
    when p_state in ('completed', 'cancelled') then p_state
    when p_state in ('dead', 'failed') then 'failed'
    when p_state = 'retrying' or p_reason = 'retry' then 'retrying'
    when p_state = 'deferred' or p_reason = 'backpressure' then 'deferred'
    else 'pending'
  end
$$;
comment on function clinical.job_status(text, text) is 'Returns the displayed status for a state and its reason: the only rule for the view, the audit and imports.';

create or replace function clinical.error_details(p_job uuid, p_since timestamptz)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  with happened as (
    select e.at, e.attempt, e.kind in ('failed', 'lost') or e.to_state = 'dead' as is_error, d.entry
    from trunkline.events as e
    cross join lateral (
      select jsonb_strip_nulls(case e.kind
        when 'lost' then jsonb_build_object(
          'error_type', 'worker_timeout', 'timeout_at', e.at,
          'original_worker', case when e.to_state <> 'dead' then e.worker end,
          'reclaim_jitter_seconds', case when e.to_state <> 'dead' then e.detail -> 'jitter_seconds' end,
          'final_worker', case when e.to_state = 'dead' then e.worker end,
          'dead_lettered_at', case when e.to_state = 'dead' then e.at end,
          'dead_letter_reason', case when e.to_state = 'dead' then 'exceeded_max_retries_after_timeout' end
        )
        when 'failed' then coalesce(e.detail -> 'error', '{}'::jsonb) || jsonb_build_object(
          'error_type', coalesce(e.detail -> 'error' ->> 'error_type', e.detail -> 'error' ->> 'type', 'error'),
          'failed_at', e.at, 'worker', e.worker,
          'dead_lettered_at', case when e.to_state = 'dead' then e.at end,
          'dead_letter_reason', case
            when e.to_state <> 'dead' then null
            when e.detail ->> 'reason' = 'not_retryable' then 'not_retryable'
            else 'exceeded_max_retries'
          end
        )
        when 'set_aside' then jsonb_build_object(
          'set_aside_reason', e.detail ->> 'reason', 'set_aside_at', e.at,
          'limit', e.detail ->> 'limit', 'unit', e.detail ->> 'unit', 'cost', e.detail -> 'cost', 'most', e.detail -> 'most'
        )
        when 'outgrown' then jsonb_build_object(
          'error_type', e.detail ->> 'reason', 'dead_lettered_at', e.at, 'dead_letter_reason', e.detail ->> 'reason',
          'limit', e.detail ->> 'limit', 'unit', e.detail ->> 'unit', 'cost', e.detail -> 'cost', 'most', e.detail -> 'most'
        )
        else case
          when e.to_state = 'dead' then jsonb_build_object(
            'error_type', coalesce(e.detail ->> 'reason', e.kind), 'dead_lettered_at', e.at,
            'dead_letter_reason', coalesce(e.detail ->> 'reason', e.kind)
          )
          else jsonb_build_object(
            'reschedule_reason', e.detail ->> 'reason',
            'reschedule_delay_seconds', e.detail -> 'delay_seconds',
            'jitter_seconds', e.detail -> 'jitter_seconds',
            'total_delay_seconds', (e.detail ->> 'delay_seconds')::numeric + (e.detail ->> 'jitter_seconds')::numeric,
            'rescheduled_at', e.at
          )
        end
      end) as entry
    ) as d
    where e.job_id = p_job
      and e.at >= p_since - interval '1 minute'
      and (e.kind in ('failed', 'lost', 'snoozed', 'set_aside') or e.to_state = 'dead')
    order by e.at desc
    limit 50
  )
  -- The last entry comes first, and earlier entries are kept.
  select
    coalesce((select h.entry from happened as h where h.is_error order by h.at desc limit 1), '{}'::jsonb)
    || coalesce((select h.entry from happened as h where not h.is_error order by h.at desc limit 1), '{}'::jsonb)
    || jsonb_build_object('history', jsonb_agg(h.entry || jsonb_build_object('attempt', h.attempt) order by h.at))
  from happened as h
  having count(*) > 0
$$;
comment on function clinical.error_details(uuid, timestamptz) is 'Returns a job''s last error and last deferral, and the history of its attempts.';

create or replace function clinical.tag(p_tags text[], p_name text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select substr(t.tag, length(p_name) + 2) from unnest(p_tags) as t (tag) where starts_with(t.tag, p_name || ':') limit 1
$$;
comment on function clinical.tag(text[], text) is 'Returns the value of a tag NAME:VALUE.';

create or replace function clinical.stage_payload(p_payload jsonb, p_workflow uuid, p_stage text)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select p_payload || coalesce(
    (
      -- What a later stage says replaces what an earlier one said. File, endpoint and estimate were fixed at the upload:
      -- no result moves a pipeline to another file, or makes its claim charge something else.
      select jsonb_object_agg(e.key, e.value order by b.place)
      from trunkline.workflow_steps as s
      join trunkline.workflow_steps as b on b.workflow_id = s.workflow_id and b.place < s.place and b.state = 'completed'
      cross join lateral trunkline.workflow_results(p_workflow => p_workflow, p_step => b.name, p_limit => 1) as r
      cross join lateral jsonb_each(
        case when jsonb_typeof(r.result -> 'next_payload') = 'object' then r.result -> 'next_payload' else '{}'::jsonb end
      ) as e
      where s.workflow_id = p_workflow and s.name = p_stage and e.key not in ('shell_file_id', 'endpoint', 'estimated_tokens')
    ),
    '{}'::jsonb
  )
$$;
comment on function clinical.stage_payload(jsonb, uuid, text) is 'Returns the payload of a stage with what the stages before it passed on as next_payload of their results.';

create or replace view clinical.job_queue with (security_barrier = true) as
select
  j.job_id as id,
  j.task as job_type,
  coalesce(clinical.tag(p_tags => j.tags, p_name => 'job_name'), j.task) as job_name,
  case
    when j.workflow_id is null or j.workflow_step = 0 then j.payload
    else clinical.stage_payload(p_payload => j.payload, p_workflow => j.workflow_id, p_stage => j.task)
  end as job_payload,
  coalesce(clinical.tag(p_tags => j.tags, p_name => 'job_category'), 'standard') as job_category,
  j.priority,
  j.run_at as scheduled_at,
  clinical.job_status(p_state => s.state, p_reason => j.reason) as status,
  case when j.state = 'running' then j.worker end as worker_id,
  case when j.state in ('running', 'completed') then j.claimed_at end as started_at,
  case when j.state = 'completed' then j.finished_at end as completed_at,
  -- A claim is the first sign of life.
  case when j.state = 'running' then greatest(j.heartbeat_at, j.claimed_at) end as heartbeat_at,
  case when j.state = 'dead' then j.finished_at end as dead_letter_at,
  least(j.failures + coalesce(i.retry_count, 0), j.max_attempts - 1 + coalesce(i.retry_count, 0)) as retry_count,
  j.max_attempts - 1 + coalesce(i.retry_count, 0) as max_retries,
  clinical.error_details(p_job => j.job_id, p_since => j.created_at) as error_details,
  j.result as job_result,
  j.created_at,
  greatest(j.created_at, j.claimed_at, j.heartbeat_at, j.finished_at, v.at) as updated_at,
  clinical.as_uuid(p_text => j.tenant) as patient_id,
  case when j.state = 'running' then j.attempt end as attempt,
  j.deferrals,
  case when j.state in ('ready', 'scheduled', 'blocked') then j.reason end as waiting_reason,
  j.correlation_id,
  i.old_id,
  j.workflow_id
from trunkline.jobs as j
join clinical.job_types as t on t.job_type = j.task
left join clinical.imported_jobs as i on i.job_id = j.job_id
cross join lateral (
  -- The old status is shown until the first event of the job here.
  select case
    when j.attempt = 0 and j.state in ('ready', 'scheduled', 'blocked') then coalesce(i.old_status, j.state)
    else j.state
  end as state
) as s
left join lateral (
  select max(e.at) as at
  from trunkline.events as e
  where e.job_id = j.job_id and e.at >= j.created_at - interval '1 minute'
) as v on true;
comment on view clinical.job_queue is 'Jobs of this profile with the names of the source system; only functions change them.';
-- Dropped because it returned the payload of any job to any worker.
drop function if exists clinical.job_bodies(uuid);

create or replace function clinical.refuse_job_write()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform clinical.refuse(
    p_code => 'not_writable',
    p_message => case
      when tg_op <> 'DELETE' and new.status = 'running' then 'running is an old status: it is read as processing and never written'
      else 'job_queue is not written to'
    end,
    p_detail => jsonb_build_object('operation', tg_op)
  );
  return null;
end;
$$;
comment on function clinical.refuse_job_write() is 'Refuses every write of the view job_queue, the old status running by name.';

drop trigger if exists refuse_job_write on clinical.job_queue;
create trigger refuse_job_write
instead of insert or update or delete on clinical.job_queue
for each row execute function clinical.refuse_job_write();
