-- Enqueues one job of a task for each payload, all or none; answers with their ids in the order of the payloads.
-- none -> ready, or scheduled where a limit puts them off. The quick way for many jobs that say nothing but their
-- payloads: two thirds of the work of enqueue_many, which gets whatever is not ordinary here and says what is wrong.
create or replace function trunkline.enqueue_batch(p_task text, p_payloads jsonb)
returns trunkline.enqueued_batch
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answer trunkline.enqueued_batch;
  v_asked integer;
  v_ids record;
  v_is_ordinary boolean;
  v_limited record;
  v_now timestamptz;
  v_policy trunkline_internal.tasks;
  v_scope text := trunkline.tenant_scope();
  v_sleepers boolean;
  v_stored bigint;
begin
  if p_payloads is null or jsonb_typeof(p_payloads) <> 'array' or jsonb_array_length(p_payloads) > 100000 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_payloads', 'must_be', 'a JSON array of at most 100000 objects')
    );
  end if;
  v_asked := jsonb_array_length(p_payloads);
  select
    t.task, t.queue, t.max_attempts, t.priority, t.limits,
    not t.audit and v_scope is distinct from ''
      and not exists (select from trunkline_internal.queues as q where q.queue = t.queue),
    exists (select from trunkline_internal.sleepers)
  into v_policy.task, v_policy.queue, v_policy.max_attempts, v_policy.priority, v_policy.limits, v_is_ordinary, v_sleepers
  from trunkline_internal.tasks as t
  where t.task = p_task;
  if v_is_ordinary then
    begin
      -- As in enqueue: numbers are drawn after the transaction has its id.
      perform pg_current_xact_id();
      v_now := trunkline.clock();
      v_ids := trunkline_internal.new_id_series(p_now => v_now);
      v_answer.job_ids := array(
        select (v_ids.prefix || to_hex(v_ids.first + n))::uuid from generate_series(1, v_asked) as n
      );
      if cardinality(v_policy.limits) > 0 then
        v_limited := trunkline_internal.store_limited(
          p_policy => v_policy, p_payloads => p_payloads, p_ids => v_answer.job_ids, p_tenant => v_scope, p_now => v_now
        );
        v_stored := v_limited.stored;
        v_answer.state := v_limited.state;
        v_answer.run_at := v_limited.run_at;
      else
        insert into trunkline_internal.waiting (
          job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, tenant, payload
        )
        select
          j.job_id, nextval('trunkline_internal.job_sequence'), v_now, v_now,
          v_policy.max_attempts, v_policy.priority * 2, 'ready', v_policy.queue, p_task, v_scope, j.payload
        from rows from (unnest(v_answer.job_ids), jsonb_array_elements(p_payloads)) as j (job_id, payload)
        where jsonb_typeof(j.payload) = 'object' and pg_column_size(j.payload) <= trunkline_internal.inline_limit();
        get diagnostics v_stored = row_count;
        v_answer.state := 'ready';
        v_answer.run_at := v_now;
      end if;
      if v_stored < v_asked then
        -- One of them is no object, or so large that it is kept apart: take all of them back.
        raise exception using errcode = 'data_exception';
      end if;
    exception
      when data_exception then
        v_is_ordinary := false;
    end;
  end if;
  if not coalesce(v_is_ordinary, false) then
    select array_agg(e.job_id order by e.place), min(e.state), min(e.run_at)
    into v_answer.job_ids, v_answer.state, v_answer.run_at
    from trunkline.enqueue_many(p_jobs => (
      select jsonb_agg(jsonb_build_object('task', p_task, 'payload', j.payload) order by j.place)
      from jsonb_array_elements(p_payloads) with ordinality as j (payload, place)
    )) with ordinality as e (job_id, created, state, run_at, place);
    return v_answer;
  end if;
  if v_sleepers and v_asked > 0 then
    perform trunkline_internal.wake_sleepers(p_queues => array[v_policy.queue]);
  end if;
  return v_answer;
end;
$$;
comment on function trunkline.enqueue_batch(text, jsonb) is 'Enqueues one job of a task for each payload, all or none; answers with their ids in the order of the payloads.';
