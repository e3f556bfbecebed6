-- Enqueues the jobs of a document one by one: those with keys in key order, so that two batches cannot deadlock.
-- A refusal receives the index of its job.
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
  v_job record;
begin
  v_answers := array_fill(null::trunkline.enqueued, array[jsonb_array_length(p_jobs)]);
  for v_job in
    select j.*
    from jsonb_populate_recordset(null::trunkline_internal.request, p_jobs) with ordinality as j
    order by j.tenant nulls first, j.idempotency_key nulls first, j.unique_key nulls first, j.task, j.ordinality
  loop
    v_answers[v_job.ordinality] := trunkline.enqueue(
      p_payload => coalesce(v_job.payload, '{}'::jsonb),
      -- <job arguments: v_job without payload>
      p_task => v_job.task, p_queue => v_job.queue, p_priority => v_job.priority, p_run_at => v_job.run_at,
      p_delay => v_job.delay, p_tenant => v_job.tenant, p_unique_key => v_job.unique_key,
      p_idempotency_key => v_job.idempotency_key, p_correlation_id => v_job.correlation_id,
      p_max_attempts => v_job.max_attempts, p_tags => v_job.tags, p_cost => v_job.cost, p_accepted => v_job.accepted,
      p_expires_at => v_job.expires_at
      -- </job>
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
      errcode = sqlstate, message = sqlerrm, hint = v_hint,
      detail = jsonb_build_object('index', v_job.ordinality - 1) || v_detail::jsonb;
end;
$$;
comment on function trunkline_internal.enqueue_each(jsonb) is 'Enqueues the jobs of a document one by one: those with keys in key order, so that two batches cannot deadlock.';
