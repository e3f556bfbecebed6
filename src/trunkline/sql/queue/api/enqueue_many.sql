-- Enqueues thousands of jobs in one statement, all or none; returns one row for each, in the order of the request.
-- p_jobs is a JSON array of objects with the arguments of enqueue as keys, without the p_. none -> ready | scheduled.
-- A single job, and batches with keys or accepted jobs, are enqueued one by one. Keys are taken in key order, so that two
-- batches cannot deadlock.
create or replace function trunkline.enqueue_many(p_jobs jsonb)
returns setof trunkline.enqueued
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- A job with one of the others is enqueued alone.
  c_fields constant text[] := trunkline_internal.request_fields(p_except => '{unique_key,idempotency_key,accepted}');
  v_batch record;
  v_is_set boolean;
begin
  if p_jobs is null or jsonb_typeof(p_jobs) <> 'array' or jsonb_array_length(p_jobs) > 100000 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_jobs', 'must_be', 'a JSON array of at most 100000 objects')
    );
  end if;
  if jsonb_array_length(p_jobs) = 0 then
    return;
  end if;
  -- A single job costs half as much through enqueue.
  v_is_set := jsonb_array_length(p_jobs) > 1;
  -- Finds misspelt fields, which would be ignored, and jobs that go another way: 4 % of the whole.
  if exists (
    select from jsonb_array_elements(p_jobs) as j (job) where j.job - c_fields <> '{}'::jsonb
  ) then
    perform trunkline_internal.check_fields(p_jobs => p_jobs);
    v_is_set := false;
  end if;
  if v_is_set then
    v_batch := trunkline_internal.enqueue_set(p_jobs => p_jobs, p_task => null);
    if v_batch.job_ids is not null then
      return query
      select
        b.job_id, true, case when b.run_at > v_batch.enqueued_at then 'scheduled' else 'ready' end,
        coalesce(b.run_at, v_batch.enqueued_at)
      from unnest(v_batch.job_ids, v_batch.run_at) as b (job_id, run_at);
      return;
    end if;
  end if;
  return query select e.* from trunkline_internal.enqueue_each(p_jobs => p_jobs) as e;
exception
  when data_exception or feature_not_supported then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_jobs', 'must_be', 'objects whose fields have the types of enqueue''s arguments', 'reason', sqlerrm,
        'index', trunkline_internal.misfit(p_jobs => p_jobs, p_now => trunkline.clock())
      )
    );
end;
$$;
comment on function trunkline.enqueue_many(jsonb) is 'Enqueues thousands of jobs in one statement, all or none; returns one row for each, in the order of the request.';
