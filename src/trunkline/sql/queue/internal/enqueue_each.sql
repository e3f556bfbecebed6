-- Enqueues the jobs of a document one by one: those with keys in key order, so that two batches cannot deadlock.
-- A refusal gets the index of its job.
create or replace function trunkline_internal.enqueue_each(p_jobs jsonb)
returns setof trunkline.enqueued
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answers trunkline.enqueued[];
  v_detail text;
  v_hint text;
  v_index bigint;
  v_job record;
  v_max_bytes integer := trunkline_internal.setting(p_name => 'max_payload_bytes')::integer;
begin
  v_answers := array_fill(null::trunkline.enqueued, array[jsonb_array_length(p_jobs)]);
  for v_job in
    select
      coalesce(j.payload, '{}'::jsonb) as body,
      j.*
    from rows from (
      jsonb_to_recordset(p_jobs) as (
        task text, payload jsonb, queue text, priority integer, run_at timestamptz, delay interval,
        tenant text, unique_key text, idempotency_key text, correlation_id text, max_attempts integer,
        tags text[], cost jsonb, accepted boolean
      )
    ) with ordinality as j (
      task, payload, queue, priority, run_at, delay, tenant, unique_key, idempotency_key,
      correlation_id, max_attempts, tags, cost, accepted, place
    )
    order by j.tenant nulls first, j.idempotency_key nulls first, j.unique_key nulls first, j.task, j.place
  loop
    -- Checked here too, because only this place knows the index to tell.
    perform trunkline_internal.check_request(
      p_task => v_job.task, p_payload => v_job.body, p_queue => v_job.queue, p_priority => v_job.priority,
      p_run_at => v_job.run_at, p_delay => v_job.delay, p_tenant => v_job.tenant,
      p_unique_key => v_job.unique_key, p_idempotency_key => v_job.idempotency_key,
      p_correlation_id => v_job.correlation_id, p_max_attempts => v_job.max_attempts,
      p_tags => v_job.tags, p_max_bytes => v_max_bytes, p_index => (v_job.place - 1)::integer
    );
    v_index := v_job.place - 1;
    v_answers[v_job.place] := trunkline.enqueue(
      p_task => v_job.task, p_payload => v_job.body, p_queue => v_job.queue,
      p_priority => v_job.priority, p_run_at => v_job.run_at, p_delay => v_job.delay,
      p_tenant => v_job.tenant, p_unique_key => v_job.unique_key,
      p_idempotency_key => v_job.idempotency_key, p_correlation_id => v_job.correlation_id,
      p_max_attempts => v_job.max_attempts, p_tags => v_job.tags, p_cost => v_job.cost,
      p_accepted => v_job.accepted
    );
  end loop;
  return query select a.* from unnest(v_answers) as a;
exception
  when others then
    if sqlstate !~ '^TL' then
      raise;
    end if;
    get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    raise exception using
      errcode = sqlstate, message = sqlerrm, detail = jsonb_build_object('index', v_index) || v_detail::jsonb, hint = v_hint;
end;
$$;
comment on function trunkline_internal.enqueue_each(jsonb) is 'Enqueues the jobs of a document one by one: those with keys in key order, so that two batches cannot deadlock.';
