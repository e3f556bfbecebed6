-- Takes replayed jobs of a workflow back into it: their steps open again, and steps cancelled because of them wait again, with their jobs.
-- cancelled -> blocked for jobs of those steps, under their ids. A workflow that had ended is live again, in a new generation.
-- The caller has put the replayed jobs, whose steps and items it passes, back to ready. Refused if another job or workflow
-- holds a key that one of these needs. Locks: the workflow exclusively, then unique keys.
create or replace function trunkline_internal.reopen_workflow(
  p_workflow uuid,
  p_places integer[],
  p_items integer[],
  p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_holder uuid;
  v_reopened integer[];
  v_workflow trunkline_internal.workflows;
begin
  perform trunkline_internal.lock_workflow(p_workflow => p_workflow);
  select w.* into v_workflow from trunkline_internal.workflows as w where w.workflow_id = p_workflow;
  if not found then
    return;
  end if;
  delete from trunkline_internal.workflow_ends as e
  using unnest(p_places, p_items) as r (place, item)
  where e.workflow_id = p_workflow and e.step = r.place and e.item = coalesce(r.item, 0) and e.state = 'dead';
  update trunkline_internal.workflow_steps as s
  set
    state = case when e.has_dead then 'failed' when e.has_cancelled then 'cancelled' else 'open' end,
    reason = case when e.has_dead then s.reason when e.has_cancelled then 'cancelled' end,
    ended_at = case when e.has_dead or e.has_cancelled then s.ended_at end
  from (
    select distinct r.place from unnest(p_places) as r (place)
  ) as r
  cross join lateral (
    select coalesce(bool_or(e.state = 'dead'), false) as has_dead, coalesce(bool_or(e.state = 'cancelled'), false) as has_cancelled
    from trunkline_internal.workflow_ends as e
    where e.workflow_id = p_workflow and e.step = r.place and e.state <> 'completed'
  ) as e
  where s.workflow_id = p_workflow and s.place = r.place;
  if v_workflow.state <> 'live' then
    if v_workflow.unique_key is not null then
      insert into trunkline_internal.workflow_keys (tenant, kind, name, key, workflow_id)
      values (coalesce(v_workflow.tenant, ''), 'unique', v_workflow.name, v_workflow.unique_key, p_workflow)
      on conflict (tenant, kind, name, key) do nothing;
      if not found then
        select k.workflow_id into v_holder
        from trunkline_internal.workflow_keys as k
        where k.tenant = coalesce(v_workflow.tenant, '')
          and k.kind = 'unique'
          and k.name = v_workflow.name
          and k.key = v_workflow.unique_key;
        perform trunkline_internal.refuse(
          p_name => 'unique_key_held',
          p_detail => jsonb_build_object('workflow', p_workflow, 'unique_key', v_workflow.unique_key, 'holder', v_holder)
        );
      end if;
    end if;
    update trunkline_internal.workflows as w
    set
      state = 'live', ended_at = null, generation = w.generation + 1, cancel_requested_at = null, stop_kind = null, reason = null,
      progress_mark = null, deadline = case when w.deadline > p_now then w.deadline end
    where w.workflow_id = p_workflow;
    perform trunkline_internal.notify_followers(p_ids => array[p_workflow]);
  end if;
  -- Cancelled for the sake of a dependency, unless another dependency still keeps them from running.
  with recursive kept as (
    select d.place
    from trunkline_internal.workflow_steps as s
    cross join lateral unnest(s.dependants) as d (place)
    where s.workflow_id = p_workflow and (s.state = 'failed' or (s.state = 'cancelled' and s.reason <> 'dependency'))
    union
    select d.place
    from kept as k
    join trunkline_internal.workflow_steps as s on s.workflow_id = p_workflow and s.place = k.place
    cross join lateral unnest(s.dependants) as d (place)
  )
  select array_agg(s.place order by s.place)
  into v_reopened
  from trunkline_internal.workflow_steps as s
  where s.workflow_id = p_workflow
    and s.state = 'cancelled'
    and s.reason = 'dependency'
    and not exists (select from kept as k where k.place = s.place);
  if v_reopened is not null then
    update trunkline_internal.workflow_steps as s
    set
      state = 'blocked', reason = null, ended_at = null,
      open_dependencies = (
        select count(*)
        from unnest(s.after) as a (place)
        join trunkline_internal.workflow_steps as d on d.workflow_id = p_workflow and d.place = a.place
        where d.state <> 'completed'
      )
    where s.workflow_id = p_workflow and s.place = any(v_reopened);
    perform trunkline_internal.block_again(p_workflow => p_workflow, p_places => v_reopened, p_now => p_now);
  end if;
end;
$$;
comment on function trunkline_internal.reopen_workflow(uuid, integer[], integer[], timestamptz) is 'Takes replayed jobs of a workflow back into it: their steps open again, and steps cancelled because of them wait again, with their jobs.';
