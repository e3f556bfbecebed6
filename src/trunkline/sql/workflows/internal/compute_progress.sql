-- Returns percent, phase and message of a workflow from the states of its jobs; percent is null if it has no jobs yet.
-- With phases, each phase counts by its weight, and its share is that of its completed jobs; a phase without steps counts
-- once a job has started. Without phases each step counts the same. In a batch, failed and cancelled jobs count as well. A
-- running job counts by its own progress if its step has no other job. Only a completed workflow, or a batch, has 100 %.
create or replace function trunkline_internal.compute_progress(p_workflow trunkline_internal.workflows)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_message text;
  v_percent numeric;
  v_phase text;
  v_state text := trunkline_internal.workflow_state(p_workflow => p_workflow.workflow_id, p_state => p_workflow.state);
begin
  if v_state = 'completed' then
    return jsonb_build_object('state', v_state, 'percent', 100, 'phase', null, 'message', null);
  end if;
  with ends as (
    select e.step, count(*) filter (where e.state = 'completed' or p_workflow.kind = 'batch') as done
    from trunkline_internal.workflow_ends as e
    where e.workflow_id = p_workflow.workflow_id
    group by e.step
  ),
  steps as (
    select
      s.place, s.name, s.phase, s.state, s.items, coalesce(e.done, 0) as done,
      -- Steps that were taken over from another workflow have no ends here.
      case when s.state = 'completed' then greatest(s.items, 1) else coalesce(e.done, 0) + coalesce(r.part, 0) end as part,
      case when s.state = 'completed' and s.items = 0 then 1 else greatest(s.items, 1) end as whole
    from trunkline_internal.workflow_steps as s
    left join ends as e on e.step = s.place
    left join lateral (
      select r.progress / 100.0 as part
      from trunkline_internal.running as r
      where s.items = 1 and r.workflow_id = s.workflow_id and r.workflow_step = s.place
      limit 1
    ) as r on true
    where s.workflow_id = p_workflow.workflow_id
  ),
  phases as (
    select
      p.place, p.phase ->> 'name' as name, (p.phase ->> 'weight')::numeric as weight,
      coalesce(sum(s.part) / sum(s.whole), case when v_state = 'queued' then 0 else 1 end) as share
    from jsonb_array_elements(p_workflow.phases) with ordinality as p (phase, place)
    left join steps as s on s.phase = p.phase ->> 'name'
    group by p.place, p.phase
  ),
  shares as (
    select
      case
        when p_workflow.phases is not null then (select sum(p.weight * p.share) / nullif(sum(p.weight), 0) from phases as p)
        when p_workflow.kind = 'batch' then (select sum(s.part) / sum(s.whole) from steps as s)
        else (select avg(s.part / s.whole) from steps as s)
      end as share
  )
  select
    100 * h.share, (select p.name from phases as p where p.share < 1 order by p.place limit 1),
    (
      select case when s.items > 1 then format('%s: %s of %s', s.name, s.done, s.items) else s.name end
      from steps as s
      where s.state = 'open'
      order by s.place
      limit 1
    )
  into v_percent, v_phase, v_message
  from shares as h;
  return jsonb_build_object(
    'state', v_state,
    'percent', least(floor(v_percent), case when p_workflow.kind = 'batch' and p_workflow.ended_at is not null then 100 else 99 end),
    'phase', v_phase,
    'message', coalesce(
      (
        select r.message
        from trunkline_internal.running as r
        where r.workflow_id = p_workflow.workflow_id and r.message is not null
        order by r.workflow_step, r.workflow_item
        limit 1
      ),
      v_message
    )
  );
end;
$$;
comment on function trunkline_internal.compute_progress(trunkline_internal.workflows) is 'Returns percent, phase and message of a workflow from the states of its jobs; percent is null if it has no jobs yet.';
