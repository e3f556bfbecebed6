-- Cut-over and roll-back: every step has a dry run, and its result is recorded.
-- requires: upload, work, operate, configuration, limits, legacy
-- source: 11 (roll-out)

create table if not exists clinical.rollout_results (
  result bigint generated always as identity primary key,
  plan text not null check (plan in ('checklist', 'cutover', 'rollback', 'takeover')),
  step text not null,
  dry_run boolean not null,
  outcome text not null check (outcome in ('done', 'would_do', 'refused')),
  detail jsonb not null,
  evidence text,
  at timestamptz not null,
  actor text not null default session_user
);
create index if not exists rollout_results_by_step on clinical.rollout_results (plan, step, result);
comment on table clinical.rollout_results is 'Results of the steps of the checklist, the cut-over and the roll-back, with time and caller.';
alter table clinical.rollout_results enable row level security;
alter table clinical.rollout_results force row level security;
drop policy if exists service_only on clinical.rollout_results;
create policy service_only on clinical.rollout_results
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create table if not exists clinical.legacy_functions (
  name text primary key check (name <> ''),
  removed_at timestamptz
);
comment on table clinical.legacy_functions is 'Client functions of the older system, listed before the cut-over and marked when they are removed.';
alter table clinical.legacy_functions enable row level security;
alter table clinical.legacy_functions force row level security;
drop policy if exists service_only on clinical.legacy_functions;
create policy service_only on clinical.legacy_functions
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);

create or replace view clinical.rollout_steps as
select *
from (
  values
    ('checklist', 1, 'schema', 'auto', 'T-?', 'every script of the profile is in force'),
    ('checklist', 2, 'rpcs', 'auto', 'T-?', 'the RPCs exist, and only the service may call them'),
    ('checklist', 3, 'limits', 'evidence', 'T-?', 'limits have the values of production'),
    ('checklist', 4, 'worker', 'evidence', 'T-?', 'workers are deployed with a service key that is nowhere else'),
    ('checklist', 5, 'security', 'auto', 'T-?', 'anonymous and signed-in roles have no access to jobs, limits and RPCs'),
    ('checklist', 6, 'audit', 'auto', 'T-?', 'no clinical write without its patient, and the guards are in force'),
    ('checklist', 7, 'indexes', 'auto', 'T-?', 'the indexes are valid'),
    ('checklist', 8, 'legacy_listed', 'auto', 'T-?', 'the twelve older functions are listed'),
    ('checklist', 9, 'rollback_rehearsed', 'auto', 'T-?', 'every step of the roll-back was tried, for real or as a dry run'),
    ('cutover', 1, 'maintenance_on', 'auto', 'T+0', 'maintenance on: claims stop, uploads if so configured'),
    ('cutover', 2, 'functions_healthy', 'evidence', 'T+5', 'the two client functions are deployed and healthy'),
    ('cutover', 3, 'remove_legacy', 'evidence', 'T+10', 'the older functions are removed, after the new ones were found healthy'),
    ('cutover', 4, 'claims_on', 'auto', 'T+15', 'workers are up and claim again'),
    ('cutover', 5, 'claims_checked', 'auto', 'T+15', 'workers claim and send heartbeats'),
    ('cutover', 6, 'limits_checked', 'auto', 'T+20', 'a small batch stayed within the limits'),
    ('cutover', 7, 'upload_checked', 'auto', 'T+25', 'an upload went through, with an audit that names its job'),
    ('cutover', 8, 'maintenance_off', 'auto', 'T+30', 'maintenance off: watch the metrics'),
    ('rollback', 1, 'enqueue_off', 'auto', 'R+0', 'V3 enqueue is off: no new jobs are accepted, and accepted ones are kept'),
    ('rollback', 2, 'claims_off', 'auto', 'R+1', 'claims are off and workers are asked to drain'),
    ('rollback', 3, 'workers_zero', 'auto', 'R+5', 'no worker of this profile is alive'),
    ('rollback', 4, 'return_jobs', 'auto', 'R+6', 'running jobs can be claimed again, without a retry counted'),
    ('rollback', 5, 'legacy_views', 'auto', 'R+8', 'readers of the older system find status and error in their old format'),
    ('rollback', 6, 'restore_legacy', 'evidence', 'R+10', 'the older functions are deployed again from version control'),
    ('rollback', 7, 'verify', 'auto', 'R+15', 'every upload exists and has a workflow or an end')
) as s (plan, place, step, proof, at, title);
comment on view clinical.rollout_steps is 'The steps of the checklist, the cut-over and the roll-back in order; a step with proof evidence needs a description of how it was verified.';

create or replace function clinical.open_to_clients()
returns setof text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  -- A null grantee is PUBLIC. Intended grants to clients are left out.
  select 'function ' || p.oid::regprocedure || ' for ' || coalesce(r.rolname, 'public')
  from pg_proc as p
  cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
  left join pg_roles as r on r.oid = a.grantee
  where p.pronamespace = 'clinical'::regnamespace
    and (a.grantee = 0 or r.rolname in ('anon', 'authenticated'))
    and not (
      r.rolname = 'authenticated'
        and p.proname in ('submit_upload', 'audit_logger_v3', 'client_health', 'has_profile_access', 'user_id', 'as_uuid')
      or r.rolname = 'anon' and p.proname = 'client_health'
    )
  union all
  select 'table ' || c.oid::regclass || ' for ' || coalesce(r.rolname, 'public')
  from pg_class as c
  cross join lateral aclexplode(c.relacl) as a
  left join pg_roles as r on r.oid = a.grantee
  where c.relnamespace = 'clinical'::regnamespace
    and (a.grantee = 0 or r.rolname in ('anon', 'authenticated'))
    and not (r.rolname = 'authenticated' and c.relname in ('shell_files', 'clinical_records') and a.privilege_type = 'SELECT')
$$;
comment on function clinical.open_to_clients() is 'Returns objects of this profile that PUBLIC, the anonymous or the signed-in role may use but must not; expected to be empty.';

create or replace function clinical.alive_workers()
returns setof text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select w.worker
  from trunkline.workers as w
  where w.alive
    and (w.queues is null or w.queues && clinical.queues())
    and (w.tasks is null or w.tasks && array(select t.job_type from clinical.job_types as t))
  union
  select m.worker
  from trunkline.stale_monitor as m
  join clinical.job_types as t on t.job_type = m.task
  where m.liveness_age < 3 * make_interval(secs => clinical.configured(p_key => 'worker.heartbeat_interval_seconds')::integer)
    and m.heartbeat_at is not null
$$;
comment on function clinical.alive_workers() is 'Returns live workers that serve this profile.';

create or replace function clinical.last_result(p_plan text, p_step text)
returns clinical.rollout_results
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select r.* from clinical.rollout_results as r where r.plan = p_plan and r.step = p_step order by r.result desc limit 1
$$;
comment on function clinical.last_result(text, text) is 'Returns the last result of a step.';

create or replace function clinical.check_step(p_plan text, p_step text)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_since timestamptz := (clinical.last_result(p_plan => 'cutover', p_step => 'maintenance_on')).at;
begin
  -- Facts of a step; the field problems lists what is wrong.
  return case p_plan || '/' || p_step
    when 'checklist/schema' then (
      select jsonb_build_object('scripts', count(*), 'problems', case
        when count(*) = 0 then jsonb_build_array('no script is on record') else '[]'
      end)
      from clinical.trunkline_profile_steps as s
    )
    when 'checklist/rpcs' then (
      select jsonb_build_object('rpcs', count(p.oid), 'problems', coalesce(jsonb_agg(n.name) filter (
        where p.oid is null
          or not has_function_privilege('trunkline_worker', p.oid, 'execute')
            and not has_function_privilege('trunkline_producer', p.oid, 'execute')
      ), '[]'))
      from unnest(array[
        'acquire_api_capacity', 'release_api_capacity', 'enqueue_job_v3', 'claim_next_job_v3', 'update_job_heartbeat', 'reschedule_job',
        'complete_job', 'fail_job'
      ]) as n (name)
      left join pg_proc as p on p.proname = n.name and p.pronamespace = 'clinical'::regnamespace
    )
    when 'checklist/limits' then (
      select jsonb_build_object('limits', jsonb_object_agg(l.provider_name || '/' || l.api_endpoint, jsonb_build_object(
        'requests_per_minute', l.requests_per_minute, 'tokens_per_minute', l.tokens_per_minute,
        'concurrent_requests', l.concurrent_requests, 'status', l.status
      )), 'problems', '[]'::jsonb)
      from clinical.api_rate_limits as l
    )
    when 'checklist/security' then (
      select jsonb_build_object('problems', coalesce(jsonb_agg(o.name), '[]')) from clinical.open_to_clients() as o (name)
    )
    when 'checklist/audit' then (
      select jsonb_build_object('problems', coalesce(jsonb_agg(p.problem), '[]'))
      from (
        select m.value || ' audit events without a patient' as problem
        from clinical.metrics as m
        where m.metric = 'audit_without_patient' and m.value > 0
        union all
        select c.relname || ' is not guarded'
        from pg_class as c
        where c.relnamespace = 'clinical'::regnamespace and c.relname in ('shell_files', 'clinical_records')
          and not exists (select from pg_trigger as t where t.tgrelid = c.oid and t.tgname = 'require_audit' and t.tgenabled <> 'D')
      ) as p
    )
    when 'checklist/indexes' then (
      select jsonb_build_object('indexes', count(*), 'problems', coalesce(jsonb_agg(c.relname) filter (where not i.indisvalid), '[]'))
      from pg_index as i
      join pg_class as c on c.oid = i.indexrelid
      where c.relnamespace = 'clinical'::regnamespace
    )
    when 'checklist/legacy_listed' then (
      select jsonb_build_object('listed', count(*), 'problems', case
        when count(*) = 12 then '[]' else jsonb_build_array(count(*) || ' of 12 older functions are listed in legacy_functions')
      end)
      from clinical.legacy_functions as f
    )
    when 'checklist/rollback_rehearsed' then (
      select jsonb_build_object('problems', coalesce(jsonb_agg(s.step order by s.place), '[]'))
      from clinical.rollout_steps as s
      where s.plan = 'rollback'
        and not exists (select from clinical.rollout_results as r where r.plan = s.plan and r.step = s.step and r.outcome <> 'refused')
    )
    when 'cutover/functions_healthy' then (
      select jsonb_build_object(
        'health', jsonb_agg(h.health),
        -- A function that reports nothing is not healthy either.
        'problems', coalesce(jsonb_agg(h.name) filter (where (h.health ->> 'healthy')::boolean is not true), '[]')
      )
      from (
        select f.name, clinical.client_health(p_function => f.name) as health
        from unnest(array['shell-file-processor-v3', 'audit-logger-v3']) as f (name)
      ) as h
    )
    when 'cutover/remove_legacy' then (
      select jsonb_build_object('to_remove', count(*) filter (where f.removed_at is null), 'problems', case
        -- New functions are verified before the old ones are removed; otherwise, there may be none for a while.
        when (clinical.last_result(p_plan => 'cutover', p_step => 'functions_healthy')).outcome is distinct from 'done'
          then jsonb_build_array('functions_healthy comes first')
        else '[]'
      end)
      from clinical.legacy_functions as f
    )
    when 'cutover/claims_on' then (
      select jsonb_build_object('workers', coalesce(jsonb_agg(w.worker), '[]'), 'problems', case
        when count(*) = 0 then jsonb_build_array('no worker is alive') else '[]'
      end)
      from clinical.alive_workers() as w (worker)
    )
    when 'cutover/claims_checked' then (
      select jsonb_build_object('claims', count(*) filter (where e.kind = 'claimed'), 'problems', case
        when count(*) filter (where e.kind = 'claimed') = 0 then jsonb_build_array('nothing was claimed since the maintenance began')
        when exists (select from clinical.metrics as m where m.metric = 'oldest_heartbeat_seconds' and m.alert)
          then jsonb_build_array('a heartbeat is overdue')
        else '[]'
      end)
      from clinical.audit_of_jobs as e
      where e.at >= v_since
    )
    when 'cutover/limits_checked' then (
      select jsonb_build_object('calls', max(c.calls), 'problems', case
        when coalesce(max(c.calls), 0) = 0 then jsonb_build_array('no job with an endpoint was claimed yet: let a small batch run')
        else coalesce(jsonb_agg(l.provider_name || '/' || l.api_endpoint) filter (
          where l.current_requests_minute > l.requests_per_minute or l.current_tokens_minute > l.tokens_per_minute
            or l.active_requests > l.concurrent_requests
        ), '[]')
      end)
      from clinical.api_rate_limits as l
      cross join (
        select count(*) as calls
        from trunkline.events as e
        join clinical.job_types as t on t.job_type = e.task
        where e.kind = 'claimed' and t.api_endpoint is not null and e.at >= v_since
      ) as c
    )
    when 'cutover/upload_checked' then (
      select jsonb_build_object('uploads', count(*), 'problems', case
        when count(*) = 0 then jsonb_build_array('no upload since the maintenance began')
        when count(*) filter (where f.completed_at is not null) = 0 then jsonb_build_array('no upload went through to the end yet')
        when count(*) filter (where not exists (
          select from clinical.audit_entries as a where a.record_id = f.id::text and a.job_id = f.job_id and a.patient_id = f.patient_id
        )) > 0 then jsonb_build_array('an upload has no audit event with its job')
        else '[]'
      end)
      from clinical.shell_files as f
      where f.created_at >= v_since
    )
    when 'rollback/workers_zero' then (
      select jsonb_build_object('problems', coalesce(jsonb_agg(w.worker || ' is alive'), '[]')) from clinical.alive_workers() as w (worker)
    )
    when 'rollback/return_jobs' then (
      select jsonb_build_object('in_flight', count(*), 'problems', case
        when exists (select from clinical.alive_workers()) then jsonb_build_array('workers_zero comes first') else '[]'
      end)
      from trunkline.stale_monitor as m
      join clinical.job_types as t on t.job_type = m.task
    )
    when 'rollback/verify' then (
      select jsonb_build_object('uploads', count(*), 'problems', coalesce(jsonb_agg(f.id) filter (
        where f.completed_at is null and f.processing_error is null and not exists (
          -- A completed pipeline whose file has no end is as lost as a missing one.
          select from trunkline.workflows as w where w.workflow_id = f.workflow_id and w.state <> 'completed'
        )
      ), '[]'))
      from clinical.shell_files as f
    )
    else jsonb_build_object('problems', '[]'::jsonb)
  end;
end;
$$;
comment on function clinical.check_step(text, text) is 'Returns whether a step can be taken or holds: its facts and its problems. Changes nothing.';

create or replace function clinical.take_step(p_plan text, p_step text)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count bigint := 0::bigint;
  v_job record;
begin
  case p_plan || '/' || p_step
    when 'cutover/maintenance_on' then
      perform clinical.set_configuration(p_key => 'maintenance.mode', p_value => 'true');
    when 'cutover/remove_legacy' then
      update clinical.legacy_functions as f set removed_at = trunkline.clock() where f.removed_at is null;
      get diagnostics v_count = row_count;
    when 'cutover/claims_on' then
      perform clinical.set_configuration(p_key => 'worker.claims_enabled', p_value => 'true');
    when 'cutover/maintenance_off' then
      perform clinical.set_configuration(p_key => 'maintenance.mode', p_value => 'false');
    when 'rollback/enqueue_off' then
      perform clinical.set_configuration(p_key => 'queue.v3_enqueue_enabled', p_value => 'false');
    when 'rollback/claims_off' then
      perform clinical.set_configuration(p_key => 'worker.claims_enabled', p_value => 'false');
      for v_job in
        select w.worker
        from trunkline.workers as w
        where w.alive
          and w.state = 'active'
          -- Not workers that also serve other queues; their claims of this profile's queues are off too.
          and (w.queues <@ clinical.queues() or w.tasks <@ array(select t.job_type from clinical.job_types as t))
      loop
        perform trunkline.drain_worker(p_worker => v_job.worker);
        v_count := v_count + 1;
      end loop;
    when 'rollback/return_jobs' then
      for v_job in
        select m.worker, array_agg(m.job_id order by m.job_id) as jobs, array_agg(m.attempt order by m.job_id) as attempts
        from trunkline.stale_monitor as m
        join clinical.job_types as t on t.job_type = m.task
        group by m.worker
      loop
        -- First settled as estimated, because their progress is unknown. Then handed back as not started: neither a retry nor
        -- a deferral is counted, and settled charges are not refunded.
        perform trunkline.settle_job(p_job => j.job, p_attempt => j.attempt)
        from unnest(v_job.jobs, v_job.attempts) as j (job, attempt);
        perform trunkline.release(
          p_worker => v_job.worker, p_jobs => v_job.jobs, p_attempts => v_job.attempts, p_reason => 'rollback', p_unstarted => true
        );
        v_count := v_count + cardinality(v_job.jobs);
      end loop;
    when 'rollback/legacy_views' then
      v_count := clinical.open_legacy_views();
    when 'rollback/restore_legacy' then
      update clinical.legacy_functions as f set removed_at = null where f.removed_at is not null;
      get diagnostics v_count = row_count;
    else
      null;
  end case;
  return jsonb_build_object('changed', v_count);
end;
$$;
comment on function clinical.take_step(text, text) is 'Makes the changes of a step; steps that only check have none.';

create or replace function clinical.run_step(
  p_plan text,
  p_step text,
  p_dry_run boolean default true,
  p_evidence text default null,
  p_problems text[] default null
)
returns clinical.rollout_results
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_facts jsonb;
  v_outcome text;
  v_result clinical.rollout_results;
  v_step record;
begin
  select s.* into v_step from clinical.rollout_steps as s where s.plan = p_plan and s.step = p_step;
  if not found then
    perform clinical.refuse(
      p_code => 'step_refused', p_message => format('there is no step %s of %s', p_step, p_plan),
      p_detail => jsonb_build_object('known', (
        select jsonb_agg(s.plan || ' ' || s.step order by s.plan, s.place) from clinical.rollout_steps as s
      ))
    );
  end if;
  -- Problems that the caller found outside the database count too.
  v_facts := clinical.check_step(p_plan => p_plan, p_step => p_step);
  v_facts := v_facts || jsonb_build_object('problems', (v_facts -> 'problems') || coalesce(to_jsonb(p_problems), '[]'::jsonb));
  if v_step.proof = 'evidence' and coalesce(p_evidence, '') = '' and not p_dry_run then
    v_facts := v_facts || jsonb_build_object('problems', (v_facts -> 'problems') || '["state with evidence how it was verified"]'::jsonb);
  end if;
  v_outcome := case
    when v_facts -> 'problems' <> '[]'::jsonb then 'refused'
    when p_dry_run then 'would_do'
    else 'done'
  end;
  if v_outcome = 'done' then
    v_facts := v_facts || clinical.take_step(p_plan => p_plan, p_step => p_step);
  end if;
  insert into clinical.rollout_results (plan, step, dry_run, outcome, detail, evidence, at)
  values (p_plan, p_step, p_dry_run, v_outcome, v_facts, p_evidence, trunkline.clock())
  returning * into v_result;
  return v_result;
end;
$$;
comment on function clinical.run_step(text, text, boolean, text, text[]) is 'Takes one step of the checklist, the cut-over or the roll-back, or tries it as a dry run; the result is always recorded, including a refusal.';
