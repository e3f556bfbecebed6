-- Refuses a rerun that lacks a request or a result, because a job was discarded or its retention is over; the detail names the first step.
-- p_places are the steps that run, p_jobs the requests found for them, with the steps they belong to. Of the other steps only those
-- matter whose results a map or a payload reads.
create or replace function trunkline_internal.check_rerun(
  p_workflow uuid,
  p_places integer[],
  p_jobs jsonb,
  p_job_places integer[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_detail jsonb;
begin
  select jsonb_build_object('step', s.name, 'missing', 'request', 'jobs', s.items - coalesce(f.number, 0))
  into v_detail
  from trunkline_internal.workflow_steps as s
  left join (
    select p.place, count(*) as number from unnest(p_job_places) as p (place) group by p.place
  ) as f on f.place = s.place
  where s.workflow_id = p_workflow and s.place = any(p_places) and s.kind <> 'map' and s.items > coalesce(f.number, 0)
  order by s.place
  limit 1;
  if v_detail is null then
    with requests as (
      select p_jobs as document
      union all
      select jsonb_build_array(s.request)
      from trunkline_internal.workflow_steps as s
      where s.workflow_id = p_workflow and s.place = any(p_places) and s.kind = 'map'
    ),
    sources as (
      select distinct n.name #>> '{}' as name
      from requests as r
      cross join lateral jsonb_path_query(
        r.document, '$[*].payload.* ? (@.type() == "object").keyvalue() ? (@.key starts with "$result").value'
      ) as n (name)
      union
      select o.name
      from trunkline_internal.workflow_steps as s
      join trunkline_internal.workflow_steps as o on o.workflow_id = s.workflow_id and o.place = s.map_over
      where s.workflow_id = p_workflow and s.place = any(p_places)
    )
    select jsonb_build_object('step', s.name, 'missing', 'result', 'jobs', count(*))
    into v_detail
    from sources as n
    join trunkline_internal.workflow_steps as s on s.workflow_id = p_workflow and s.name = n.name and s.place <> all(p_places)
    join trunkline_internal.workflow_ends as e on e.workflow_id = coalesce(s.result_of, s.workflow_id) and e.step = s.place
    where e.state = 'completed'
      and e.result is null
      and not exists (
        select from trunkline_internal.finished as f where f.job_id = e.job_id and f.finished_at = e.finished_at
      )
    group by s.place, s.name
    order by s.place
    limit 1;
  end if;
  if v_detail is not null then
    perform trunkline_internal.refuse(
      p_name => 'workflow_job_gone', p_detail => jsonb_build_object('workflow', p_workflow) || v_detail
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_rerun(uuid, integer[], jsonb, integer[]) is 'Refuses a rerun that lacks a request or a result, because a job was discarded or its retention is over; the detail names the first step.';
