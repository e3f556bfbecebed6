-- Returns requests for the jobs of these steps of an ended workflow, as graph_requests does for a graph. Jobs of maps are left out.
-- Unique keys are not taken over: the old jobs have ended, and other jobs may hold them. Jobs that are gone are left out;
-- check_rerun refuses a rerun without them.
create or replace function trunkline_internal.old_requests(
  p_workflow trunkline_internal.workflows,
  p_places integer[],
  out jobs jsonb,
  out places integer[],
  out items integer[],
  out blocked boolean[]
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  select
    coalesce(jsonb_agg(r.request order by r.place, r.item), '[]'),
    array_agg(r.place order by r.place, r.item), array_agg(r.item order by r.place, r.item),
    array_agg(r.is_blocked order by r.place, r.item)
  into jobs, places, items, blocked
  from (
    select
      s.place, case when s.kind = 'job' then -1 else e.item end as item,
      exists (select from unnest(s.after) as a (place) where a.place = any(p_places)) as is_blocked,
      jsonb_strip_nulls((
        select jsonb_object_agg(f.key, f.value)
        from jsonb_each(o.job) as f
        where f.key = any('{task,queue,priority,tenant,correlation_id,max_attempts,tags}')
      )) || jsonb_build_object('payload', coalesce(nullif(o.job -> 'payload', 'null'), (
        select b.body from trunkline_internal.bodies as b
        where b.job_id = e.job_id and b.kind = 'payload' and b.day = (o.job ->> 'payload_day')::date
      ), '{}')) as request
    from trunkline_internal.workflow_steps as s
    join trunkline_internal.workflow_ends as e
      on e.workflow_id = coalesce(s.result_of, s.workflow_id) and e.step = s.place
    cross join lateral (
      select to_jsonb(f) as job
      from trunkline_internal.finished as f
      where f.job_id = e.job_id and f.finished_at = e.finished_at
      union all
      select to_jsonb(d) from trunkline_internal.dead as d where d.job_id = e.job_id
      limit 1
    ) as o
    where s.workflow_id = p_workflow.workflow_id and s.place = any(p_places) and s.kind <> 'map'
  ) as r;
end;
$$;
comment on function trunkline_internal.old_requests(trunkline_internal.workflows, integer[]) is 'Returns requests for the jobs of these steps of an ended workflow, as graph_requests does for a graph. Jobs of maps are left out.';
