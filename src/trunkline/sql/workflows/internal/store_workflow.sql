-- Stores a graph with all its jobs, or returns the workflow that has its unique or idempotency key. The work of start_workflow.
-- none -> ready | scheduled, or blocked for jobs of steps that wait for others. Nothing is stored if anything is refused. The
-- jobs' checks, costs, limits, labels, bodies and events are those of enqueue. A workflow of child jobs has a parent, an id of its own
-- choice, and is one deeper than the workflow of its parent.
create or replace function trunkline_internal.store_workflow(
  p_graph jsonb,
  p_workflow uuid default null,
  p_parent uuid default null,
  p_parent_attempt integer default null,
  p_depth integer default 0,
  p_detached boolean default false
)
returns trunkline.started_workflow
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_deadline timestamptz;
  v_graph jsonb := p_graph;
  v_jobs record;
  v_known uuid;
  v_most integer := trunkline_internal.setting(p_name => 'max_workflow_jobs')::integer;
  v_now timestamptz;
  v_steps trunkline_internal.graph_step[];
  v_task text;
  v_tenant text;
  v_total bigint;
  v_workflow uuid;
begin
  perform trunkline_internal.check_workflow(p_graph => v_graph);
  v_tenant := trunkline_internal.scoped_tenant(p_tenant => v_graph ->> 'tenant');
  select
    coalesce(jsonb_object_agg(f.field, f.value) filter (where f.value <> 'null'), '{}')
    || jsonb_strip_nulls(jsonb_build_object('tenant', v_tenant))
    || jsonb_build_object('steps', coalesce(nullif(p_graph -> 'steps', 'null'), '[]'))
  into v_graph
  from jsonb_each(p_graph) as f (field, value);
  if jsonb_array_length(v_graph -> 'steps') = 0 then
    perform trunkline_internal.refuse_graph(
      p_problem => 'steps', p_step => null, p_path => 'steps', p_detail => '{"must_be": "at least one step"}'
    );
  end if;
  select count(*) filter (where not (s.step ? 'items' or s.step ? 'map'))
    + coalesce(sum(case when jsonb_typeof(s.step -> 'items') = 'array' then jsonb_array_length(s.step -> 'items') end), 0)
  into v_total
  from jsonb_array_elements(v_graph -> 'steps') as s (step)
  where jsonb_typeof(s.step) = 'object';
  if greatest(v_total, jsonb_array_length(v_graph -> 'steps')) > v_most then
    perform trunkline_internal.refuse(
      p_name => 'workflow_too_large',
      p_detail => jsonb_build_object(
        'workflow', v_graph ->> 'name', 'jobs', v_total, 'steps', jsonb_array_length(v_graph -> 'steps'), 'max_workflow_jobs', v_most
      )
    );
  end if;
  perform trunkline_internal.check_steps(p_steps => v_graph -> 'steps');
  v_steps := trunkline_internal.read_steps(p_steps => v_graph -> 'steps');
  -- As in enqueue: numbers are drawn after the transaction has its id.
  v_now := case when pg_current_xact_id() is not null then trunkline.clock() end;
  v_deadline := trunkline_internal.deadline_of(p_graph => v_graph, p_now => v_now);
  for v_task in select distinct s.task from unnest(v_steps) as s where s.kind = 'map' loop
    perform trunkline_internal.task_policy(p_task => v_task);
  end loop;
  v_workflow := coalesce(p_workflow, trunkline_internal.new_id(p_now => v_now));
  v_known := trunkline_internal.known_workflow(
    p_graph => p_graph, p_tenant => v_tenant, p_workflow => v_workflow, p_now => v_now
  );
  if v_known is not null then
    return (
      select row(w.workflow_id, false, trunkline_internal.workflow_state(p_workflow => w.workflow_id, p_state => w.state), w.jobs)
        ::trunkline.started_workflow
      from (select v_known as id) as k
      left join trunkline_internal.workflows as w on w.workflow_id = k.id
    );
  end if;
  v_jobs := trunkline_internal.graph_requests(p_graph => v_graph, p_steps => v_steps);
  perform trunkline_internal.insert_graph_jobs(
    p_workflow => v_workflow, p_jobs => v_jobs.jobs, p_places => v_jobs.places, p_items => v_jobs.items,
    p_blocked => v_jobs.blocked, p_names => array(select s.name from unnest(v_steps) as s order by s.place)
  );
  insert into trunkline_internal.workflows (
    workflow_id, created_at, deadline, parent_job, parent_attempt, depth, detached, jobs, priority, kind, name, tenant, unique_key,
    correlation_id, tags, params, phases, on_completed, on_failure, on_cancel, on_end
  )
  values (
    v_workflow, v_now, v_deadline, p_parent, p_parent_attempt, p_depth, p_detached, v_total, (v_graph ->> 'priority')::smallint,
    coalesce(v_graph ->> 'kind', 'workflow'), v_graph ->> 'name', v_tenant, v_graph ->> 'unique_key', v_graph ->> 'correlation_id',
    case when v_graph ? 'tags' then array(select t.tag from jsonb_array_elements_text(v_graph -> 'tags') as t (tag)) end,
    v_graph -> 'params', v_graph -> 'phases', v_graph -> 'on_completed', v_graph -> 'on_failure', v_graph -> 'on_cancel',
    v_graph -> 'on_end'
  );
  insert into trunkline_internal.workflow_steps (
    workflow_id, place, map_over, items, expanded, open_dependencies, kind, name, state, task, phase, after, dependants, request
  )
  select
    v_workflow, s.place, s.map_over, s.items, coalesce(s.items, 0), cardinality(s.after), s.kind, s.name,
    case when cardinality(s.after) > 0 then 'blocked' else 'open' end, s.task, s.phase, s.after, s.dependants, s.request
  from unnest(v_steps) as s;
  if exists (select from unnest(v_steps) as s where s.items = 0 and cardinality(s.after) = 0) then
    -- Nobody else sees the workflow yet, so it needs no lock.
    perform trunkline_internal.advance_workflow(
      p_workflow => v_workflow, p_now => v_now,
      p_places => array(select s.place from unnest(v_steps) as s where s.items = 0 and cardinality(s.after) = 0)
    );
  end if;
  return (
    select row(v_workflow, true, trunkline_internal.workflow_state(p_workflow => v_workflow, p_state => w.state), w.jobs)
      ::trunkline.started_workflow
    from trunkline_internal.workflows as w
    where w.workflow_id = v_workflow
  );
end;
$$;
comment on function trunkline_internal.store_workflow(jsonb, uuid, uuid, integer, integer, boolean) is 'Stores a graph with all its jobs, or returns the workflow that has its unique or idempotency key. The work of start_workflow.';
