-- Enqueues one job of a task for each payload, all or none; returns their ids in the order of the payloads.
-- none -> ready, or scheduled if a limit delays them.
create or replace function trunkline.enqueue_batch(p_task text, p_payloads jsonb)
returns trunkline.enqueued_batch
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answer trunkline.enqueued_batch;
  v_batch record;
begin
  if p_payloads is null or jsonb_typeof(p_payloads) <> 'array' or jsonb_array_length(p_payloads) > 100000 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_payloads', 'must_be', 'a JSON array of at most 100000 objects')
    );
  end if;
  v_batch := trunkline_internal.enqueue_payloads(p_task => p_task, p_payloads => p_payloads);
  if v_batch.job_ids is not null then
    return row(v_batch.job_ids, 'ready', v_batch.enqueued_at)::trunkline.enqueued_batch;
  end if;
  if jsonb_array_length(p_payloads) = 0 then
    return row(array[]::uuid[], 'ready', trunkline.clock())::trunkline.enqueued_batch;
  end if;
  v_batch := trunkline_internal.enqueue_set(p_jobs => p_payloads, p_task => p_task);
  if v_batch.job_ids is not null then
    v_answer.job_ids := v_batch.job_ids;
    v_answer.run_at := coalesce((select min(r) from unnest(v_batch.run_at) as r), v_batch.enqueued_at);
    v_answer.state := case when v_answer.run_at > v_batch.enqueued_at then 'scheduled' else 'ready' end;
    return v_answer;
  end if;
  select array_agg(e.job_id order by e.place), min(e.state), min(e.run_at)
  into v_answer.job_ids, v_answer.state, v_answer.run_at
  from trunkline_internal.enqueue_each(p_jobs => (
    select jsonb_agg(jsonb_build_object('task', p_task, 'payload', p.payload) order by p.place)
    from jsonb_array_elements(p_payloads) with ordinality as p (payload, place)
  )) with ordinality as e (job_id, created, state, run_at, place);
  return v_answer;
end;
$$;
comment on function trunkline.enqueue_batch(text, jsonb) is 'Enqueues one job of a task for each payload, all or none; returns their ids in the order of the payloads.';
