-- Deletes the rows of a workflow and, if asked for, its jobs with their bodies, steps and files; returns how many jobs. The caller holds its lock.
create or replace function trunkline_internal.remove_workflow(p_workflow uuid, p_jobs boolean)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_dead integer := 0;
  v_finished integer := 0;
  v_jobs uuid[];
begin
  if p_jobs then
    v_jobs := array(select e.job_id from trunkline_internal.workflow_ends as e where e.workflow_id = p_workflow);
    perform trunkline_internal.drop_artifacts_of(p_jobs => v_jobs, p_reason => 'deleted');
    perform trunkline_internal.drop_job_steps(p_jobs => v_jobs);
    with gone as (
      delete from trunkline_internal.dead as d
      where d.job_id = any(array(
        select o.job_id from trunkline_internal.dead as o where o.workflow_id = p_workflow order by o.job_id for update of o
      ))
      returning d.job_id, d.payload_day
    ),
    unbodied as (
      delete from trunkline_internal.bodies as b
      using gone as g
      where g.payload_day is not null and b.job_id = g.job_id and b.kind = 'payload' and b.day = g.payload_day
    )
    select count(*)::integer into v_dead from gone as g;
    with gone as (
      delete from trunkline_internal.finished as f
      using trunkline_internal.workflow_ends as e
      where e.workflow_id = p_workflow and f.job_id = e.job_id and f.finished_at = e.finished_at
      returning f.job_id, f.payload_day, f.result_day
    ),
    unbodied as (
      delete from trunkline_internal.bodies as b
      using gone as g
      where b.job_id = g.job_id and b.day in (g.payload_day, g.result_day)
    )
    select count(*)::integer into v_finished from gone as g;
  end if;
  delete from trunkline_internal.once_steps as o where o.scope = p_workflow;
  -- From now on nothing knows when the workflow ended, and the retention of its files counts from there.
  update trunkline_internal.artifacts as a
  set expires_at = w.ended_at + trunkline_internal.artifact_retention(p_kind => a.kind)
  from trunkline_internal.workflows as w
  where w.workflow_id = p_workflow
    and a.workflow_id = p_workflow
    and a.deleted_at is null
    and a.expires_at < w.ended_at + trunkline_internal.artifact_retention(p_kind => a.kind);
  delete from trunkline_internal.map_elements as m where m.workflow_id = p_workflow;
  delete from trunkline_internal.workflow_ends as e where e.workflow_id = p_workflow;
  delete from trunkline_internal.workflow_steps as s where s.workflow_id = p_workflow;
  delete from trunkline_internal.workflow_keys as k where k.workflow_id = p_workflow and k.kind = 'unique';
  delete from trunkline_internal.workflows as w where w.workflow_id = p_workflow;
  return v_dead + v_finished;
end;
$$;
comment on function trunkline_internal.remove_workflow(uuid, boolean) is 'Deletes the rows of a workflow and, if asked for, its jobs with their bodies, steps and files; returns how many jobs. The caller holds its lock.';
