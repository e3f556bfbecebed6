-- Starts an ended workflow again as a new one; completed steps that do not depend on p_from_step keep their results from the old one.
-- none -> ready | scheduled | blocked. Without p_from_step every step that has not completed runs, with what depends on it; a
-- step that is named runs too, even if it had completed. Payloads and options are those of the old jobs, costs those of
-- their tasks; refused if an old job that it needs is gone. The new workflow refers to the old one, which is kept at least
-- until the new one is removed.
create or replace function trunkline.rerun_workflow(p_workflow uuid, p_from_step text default null)
returns trunkline.started_workflow
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_from integer;
  v_jobs record;
  v_now timestamptz;
  v_old trunkline_internal.workflows;
  v_places integer[];
  v_workflow uuid;
begin
  perform trunkline_internal.require_read_committed();
  v_old := trunkline_internal.visible_workflow(p_workflow => p_workflow, p_lock => true);
  if v_old.state = 'live' then
    perform trunkline_internal.refuse_workflow_state(p_workflow => v_old, p_allowed => array['completed', 'failed', 'cancelled']);
  end if;
  if p_from_step is not null then
    select s.place into v_from from trunkline_internal.workflow_steps as s where s.workflow_id = p_workflow and s.name = p_from_step;
    if not found then
      perform trunkline_internal.refuse(
        p_name => 'unknown_step', p_detail => jsonb_build_object('workflow', p_workflow, 'step', left(p_from_step, 200))
      );
    end if;
  end if;
  -- The steps that run again: those and all that depend on them.
  with recursive again as (
    select s.place
    from trunkline_internal.workflow_steps as s
    where s.workflow_id = p_workflow and (s.place = v_from or s.state <> 'completed')
    union
    select d.place
    from again as a
    join trunkline_internal.workflow_steps as s on s.workflow_id = p_workflow and s.place = a.place
    cross join lateral unnest(s.dependants) as d (place)
  )
  select array_agg(a.place order by a.place) into v_places from again as a;
  if v_places is null then
    v_places := array(
      select s.place from trunkline_internal.workflow_steps as s where s.workflow_id = p_workflow order by s.place
    );
  end if;
  v_now := case when pg_current_xact_id() is not null then trunkline.clock() end;
  v_workflow := trunkline_internal.new_id(p_now => v_now);
  v_jobs := trunkline_internal.old_requests(p_workflow => v_old, p_places => v_places);
  perform trunkline_internal.check_rerun(
    p_workflow => p_workflow, p_places => v_places, p_jobs => v_jobs.jobs, p_job_places => v_jobs.places
  );
  perform trunkline_internal.insert_graph_jobs(
    p_workflow => v_workflow, p_jobs => v_jobs.jobs, p_places => v_jobs.places, p_items => v_jobs.items,
    p_blocked => v_jobs.blocked,
    p_names => array(select s.name from trunkline_internal.workflow_steps as s where s.workflow_id = p_workflow order by s.place)
  );
  insert into trunkline_internal.workflows (
    workflow_id, created_at, rerun_of, depth, detached, jobs, priority, kind, name, tenant, correlation_id, tags, params, phases,
    on_completed, on_failure, on_cancel, on_end
  )
  values (
    v_workflow, v_now, p_workflow, 0, true, jsonb_array_length(v_jobs.jobs), v_old.priority, v_old.kind, v_old.name, v_old.tenant,
    v_old.correlation_id, v_old.tags, v_old.params, v_old.phases, v_old.on_completed, v_old.on_failure, v_old.on_cancel, v_old.on_end
  );
  insert into trunkline_internal.workflow_steps (
    workflow_id, place, map_over, items, expanded, open_dependencies, ended_at, kind, name, state, task, phase, after, dependants,
    request, result_of
  )
  select
    v_workflow, s.place, s.map_over,
    case when s.kind = 'map' and a.runs then null else s.items end,
    case when not a.runs then s.expanded when s.kind = 'map' then 0 else s.items end,
    case when a.runs then a.open else 0 end,
    case when not a.runs then s.ended_at end,
    s.kind, s.name,
    case when not a.runs then 'completed' when a.open > 0 then 'blocked' else 'open' end,
    s.task, s.phase, s.after, s.dependants, s.request,
    case when not a.runs then coalesce(s.result_of, p_workflow) end
  from trunkline_internal.workflow_steps as s
  cross join lateral (
    select
      s.place = any(v_places) as runs,
      (select count(*)::integer from unnest(s.after) as d (place) where d.place = any(v_places)) as open
  ) as a
  where s.workflow_id = p_workflow;
  perform trunkline_internal.keep_once(p_old => p_workflow, p_new => v_workflow, p_again => v_places);
  perform trunkline_internal.advance_workflow(p_workflow => v_workflow, p_now => v_now);
  perform pg_notify('trunkline_duties', 'expand_workflows')
  from trunkline_internal.workflow_steps as s
  where s.workflow_id = v_workflow and s.kind = 'map' and s.state = 'open' and (s.items is null or s.expanded < s.items)
  limit 1;
  perform trunkline_internal.log_action(
    p_action => 'rerun_workflow', p_kind => 'workflow', p_object => p_workflow::text,
    p_before => jsonb_build_object('state', v_old.state, 'name', v_old.name),
    p_after => jsonb_build_object('new_workflow', v_workflow, 'from_step', p_from_step), p_tenant => v_old.tenant
  );
  return (
    select row(v_workflow, true, trunkline_internal.workflow_state(p_workflow => v_workflow, p_state => w.state), w.jobs)
      ::trunkline.started_workflow
    from trunkline_internal.workflows as w
    where w.workflow_id = v_workflow
  );
end;
$$;
comment on function trunkline.rerun_workflow(uuid, text) is 'Starts an ended workflow again as a new one; completed steps that do not depend on p_from_step keep their results from the old one.';
