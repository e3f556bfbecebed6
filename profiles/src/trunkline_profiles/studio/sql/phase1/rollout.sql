-- The cut-over from the older in-process system and the way back: every step has a dry run, and its result is recorded.
-- requires: routing, orders, work, operate
-- source: 2.11

create or replace view studio.rollout_steps as
select *
from (
  values
    ('cutover', 1, 'dual_read', 'auto', 'T+0', 'reads return jobs of both systems; new jobs stay with the older one'),
    ('cutover', 2, 'pools_ready', 'auto', 'T+0', 'every type of task has a live worker'),
    ('cutover', 3, 'new_to_queue', 'auto', 'T+1', 'new jobs start here'),
    ('cutover', 4, 'first_complete', 'auto', 'T+1', 'a job that started here since is complete'),
    ('cutover', 5, 'drained', 'auto', 'T+2', 'the older system has no live job'),
    ('cutover', 6, 'single_read', 'auto', 'T+2', 'reads return jobs of this system only'),
    ('rollback', 1, 'new_to_legacy', 'auto', 'R+0', 'new jobs start in the older system again; reads return jobs of both'),
    ('rollback', 2, 'queue_drained', 'auto', 'R+1', 'this system has no live job')
) as s (plan, place, step, proof, at, title);
comment on view studio.rollout_steps is 'The steps of the cut-over and of the way back in order.';

create or replace function studio.step_done_at(p_plan text, p_step text)
returns timestamptz
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select max(r.at) from studio.rollout_results as r where r.plan = p_plan and r.step = p_step and r.outcome = 'done'
$$;
comment on function studio.step_done_at(text, text) is 'Returns when a step was last done; null if never.';

create or replace function studio.step_problems(p_plan text, p_step text)
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_live bigint;
  v_since timestamptz;
begin
  case p_plan || '/' || p_step
    when 'cutover/pools_ready' then
      return array(
        select format('no worker serves %s', t.task_type)
        from studio.task_types as t
        where not studio.is_served(p_task_type => t.task_type)
        order by t.task_type
      );
    when 'cutover/new_to_queue' then
      if not (select r.dual_read from studio.routing as r) then
        return array['dual_read comes first: otherwise users lose sight of their older jobs'];
      end if;
    when 'cutover/first_complete' then
      v_since := studio.step_done_at(p_plan => 'cutover', p_step => 'new_to_queue');
      if not exists (
        select from studio.jobs as j where j.created_at >= v_since and j.status = 'complete'
      ) then
        return array['no job that started here since new_to_queue is complete'];
      end if;
    when 'cutover/drained', 'cutover/single_read' then
      if (select r.new_jobs = 'legacy' from studio.routing as r) then
        return array['new_to_queue comes first: new jobs still start in the older system'];
      end if;
      select count(*) into v_live from studio.legacy_jobs as j where j.status in ('queued', 'processing');
      if v_live > 0 then
        return array[format('%s jobs of the older system are live', v_live)];
      end if;
    when 'rollback/queue_drained' then
      if (select r.new_jobs = 'queue' from studio.routing as r) then
        return array['new_to_legacy comes first: new jobs still start here'];
      end if;
      select count(*) into v_live
      from trunkline.workflows as w
      where w.ended_at is null and w.name = any(array(select t.type from studio.job_types as t));
      if v_live > 0 then
        return array[format('%s jobs of this system are live', v_live)];
      end if;
    else
      null;
  end case;
  return '{}';
end;
$$;
comment on function studio.step_problems(text, text) is 'Returns why a step cannot be taken or does not hold. Changes nothing.';

create or replace function studio.run_step(
  p_plan text,
  p_step text,
  p_dry_run boolean default true,
  p_evidence text default null,
  p_problems text[] default null
)
returns studio.rollout_results
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outcome text;
  v_problems text[];
  v_result studio.rollout_results;
begin
  if not exists (select from studio.rollout_steps as s where s.plan = p_plan and s.step = p_step) then
    perform studio.refuse(
      p_code => 'step_refused', p_message => format('there is no step %s of %s', p_step, p_plan),
      p_detail => jsonb_build_object('known', (
        select jsonb_agg(s.plan || ' ' || s.step order by s.plan, s.place) from studio.rollout_steps as s
      ))
    );
  end if;
  -- Problems that the caller found outside the database count too.
  v_problems := studio.step_problems(p_plan => p_plan, p_step => p_step) || coalesce(p_problems, '{}');
  v_outcome := case when v_problems <> '{}' then 'refused' when p_dry_run then 'would_do' else 'done' end;
  if v_outcome = 'done' then
    update studio.routing as r
    set
      new_jobs = case
        when p_step in ('dual_read', 'new_to_legacy') then 'legacy' when p_step = 'new_to_queue' then 'queue' else r.new_jobs
      end,
      dual_read = case when p_step in ('dual_read', 'new_to_legacy') then true when p_step = 'single_read' then false else r.dual_read end;
  end if;
  insert into studio.rollout_results (plan, step, dry_run, outcome, detail, evidence, at)
  values (
    p_plan, p_step, p_dry_run, v_outcome,
    jsonb_build_object('problems', v_problems, 'routing', (select to_jsonb(r) - 'only_row' from studio.routing as r)),
    p_evidence, trunkline.clock()
  )
  returning * into v_result;
  return v_result;
end;
$$;
comment on function studio.run_step(text, text, boolean, text, text[]) is 'Takes one step of the cut-over or of the way back, or tries it as a dry run; the result is always recorded, including a refusal.';
