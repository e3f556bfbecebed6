-- Enqueues the jobs of a workflow, blocked or not, with the place of their step and their index; returns their ids in the order of p_jobs.
-- none -> ready | scheduled | blocked. p_jobs is a document of requests as of enqueue_many; p_items has -1 for a single job. One
-- statement if no job has a key or must be considered alone. Otherwise the jobs are enqueued one by one, and then those that
-- wait are blocked. A refusal has the index of its job. A held unique key refuses the whole.
create or replace function trunkline_internal.insert_jobs(
  p_workflow uuid,
  p_jobs jsonb,
  p_steps integer[],
  p_items integer[],
  p_blocked boolean[]
)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_held bigint;
  v_blocked uuid[];
  v_ids uuid[];
begin
  if jsonb_array_length(p_jobs) = 0 then
    return array[]::uuid[];
  end if;
  if not jsonb_path_exists(p_jobs, '$[*].unique_key ? (@ != null)') then
    v_ids := (trunkline_internal.enqueue_set(
      p_jobs => p_jobs, p_task => null, p_workflow => p_workflow, p_steps => p_steps, p_items => p_items, p_blocked => p_blocked
    )).job_ids;
    if v_ids is not null then
      return v_ids;
    end if;
  end if;
  select
    array_agg(e.job_id order by e.place),
    min(e.place) filter (where not e.created)
  into v_ids, v_held
  from trunkline_internal.enqueue_each(p_jobs => p_jobs) with ordinality as e (job_id, created, state, run_at, place);
  if v_held is not null then
    perform trunkline_internal.refuse(
      p_name => 'unique_key_held',
      p_detail => jsonb_build_object(
        'index', v_held - 1, 'unique_key', p_jobs -> (v_held::integer - 1) ->> 'unique_key', 'holder', v_ids[v_held]
      )
    );
  end if;
  v_blocked := array(
    select j.job_id from unnest(v_ids, p_blocked) as j (job_id, is_blocked) where j.is_blocked order by j.job_id
  );
  update trunkline_internal.waiting as w
  set
    workflow_id = p_workflow, workflow_step = j.step, workflow_item = nullif(j.item, -1),
    state = case when j.is_blocked then 'blocked' else w.state end,
    sequence = case when not j.is_blocked then w.sequence end,
    reason = case when j.is_blocked then 'dependency' end
  from unnest(v_ids, p_steps, p_items, p_blocked) as j (job_id, step, item, is_blocked)
  where w.job_id = j.job_id;
  -- Events that this transaction recorded, of audited tasks.
  update trunkline_internal.events as e
  set to_state = 'blocked'
  from trunkline_internal.waiting as w
  where w.job_id = any(v_blocked) and e.job_id = w.job_id and e.at = w.created_at and e.kind = 'enqueued';
  return v_ids;
end;
$$;
comment on function trunkline_internal.insert_jobs(uuid, jsonb, integer[], integer[], boolean[]) is 'Enqueues the jobs of a workflow, blocked or not, with the place of their step and their index; returns their ids in the order of p_jobs.';
