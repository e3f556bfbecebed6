-- Enqueues thousands of jobs in one statement, all or none; answers in the order of the request.
-- p_jobs is a JSON array of objects with the arguments of enqueue as keys, without the p_.
-- Jobs that carry a key or were accepted before are enqueued one by one, in key order, so that two batches cannot deadlock.
-- none -> ready | scheduled. One pass over the document: checking, drawing and writing are parts of
-- a single statement, since expanding the document costs a third of the whole.
create or replace function trunkline.enqueue_many(p_jobs jsonb)
returns setof trunkline.enqueued
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_fields constant text[] := array[
    'task', 'payload', 'queue', 'priority', 'run_at', 'delay', 'tenant', 'correlation_id', 'max_attempts', 'tags'
  ];
  v_day date;
  v_has_limits boolean;
  v_has_more boolean;
  v_ids record;
  v_max_bytes integer := trunkline_internal.setting(p_name => 'max_payload_bytes')::integer;
  v_now timestamptz;
  v_scope text := trunkline.tenant_scope();
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
  -- One look finds what must go another way and misspelt fields, which would be lost without a
  -- word; it costs 4 % of the whole.
  select
    exists (select from jsonb_array_elements(p_jobs) as j (job) where j.job - c_fields <> '{}'::jsonb),
    exists (select from trunkline_internal.tasks as t where cardinality(t.limits) > 0)
  into v_has_more, v_has_limits;
  -- Whether it is these jobs that are limited is asked only where there are such tasks.
  if v_has_limits then
    v_has_limits := exists (
      select
      from jsonb_array_elements(p_jobs) as j (job)
      where j.job ->> 'task' = any(array(select t.task from trunkline_internal.tasks as t where cardinality(t.limits) > 0))
    );
  end if;
  if v_has_more then
    perform trunkline_internal.check_fields(
      p_jobs => p_jobs, p_known => c_fields || array['unique_key', 'idempotency_key', 'cost', 'accepted']
    );
  end if;
  if v_has_more and exists (
    select from jsonb_array_elements(p_jobs) as j (job) where j.job ?| array['unique_key', 'idempotency_key', 'accepted']
  ) then
    return query select e.* from trunkline_internal.enqueue_each(p_jobs => p_jobs) as e;
    return;
  end if;
  if v_has_more or v_has_limits then
    return query select e.* from trunkline_internal.enqueue_limited(p_jobs => p_jobs) as e;
    return;
  end if;
  perform trunkline_internal.check_queues_open(p_jobs => p_jobs);
  perform pg_current_xact_id();
  v_now := trunkline.clock();
  v_day := (v_now at time zone 'UTC')::date;
  v_ids := trunkline_internal.new_id_series(p_now => v_now);
  return query
  with asked as materialized (
    -- Each column once: the payload twice in here would cost 5 %.
    select
      j.task, j.queue, j.run_at, j.delay, j.tenant, j.correlation_id, j.tags, j.place,
      t.task is not null as known,
      t.audit,
      coalesce(j.queue, t.queue) as to_queue,
      coalesce(j.priority, t.priority) as to_priority,
      coalesce(j.run_at, v_now + j.delay, v_now) as due_at,
      coalesce(j.max_attempts, t.max_attempts) as attempts,
      coalesce(j.payload, '{}'::jsonb) as body,
      coalesce(pg_column_size(j.payload), 0) as bytes,
      (v_ids.prefix || to_hex(v_ids.first + j.place))::uuid as job_id
    from rows from (
      jsonb_to_recordset(p_jobs) as (
        task text, payload jsonb, queue text, priority integer, run_at timestamptz, delay interval,
        tenant text, correlation_id text, max_attempts integer, tags text[]
      )
    ) with ordinality as j (
      task, payload, queue, priority, run_at, delay, tenant, correlation_id, max_attempts, tags, place
    )
    left join trunkline_internal.tasks as t on t.task = j.task
    -- The join may turn the order round, and the sequence numbers are drawn in this one.
    order by j.place
  ),
  -- Conservative: whatever might be refused stops the whole statement from writing; the pass below
  -- then says what it was.
  suspect as materialized (
    select exists (
      select
      from asked as a
      where not a.known
        or jsonb_typeof(a.body) <> 'object'
        or a.bytes > v_max_bytes
        or a.delay < interval '0'
        or a.to_priority not between -50 and 49
        or (a.delay is not null and a.run_at is not null)
        or a.delay > interval '3650 days'
        or a.run_at not between '1970-01-01 00:00:00+00'::timestamptz and '9000-01-01 00:00:00+00'::timestamptz
        or a.queue = '' or length(a.queue) > 200
        or a.tenant = '' or octet_length(a.tenant) > 400
        or (v_scope is not null and (v_scope = '' or a.tenant <> v_scope))
        or length(a.correlation_id) > 200
        or a.attempts not between 1 and 1000
        or case
          when a.tags is null then false
          when array_ndims(a.tags) > 1 or cardinality(a.tags) > 20 or octet_length(a.tags::text) > 200 then true
          else array_position(a.tags, null) is not null
        end
    ) as found
  ),
  new_lanes as (
    insert into trunkline_internal.lanes (queue, lane)
    select a.to_queue, a.to_lane
    from (
      select a.to_queue, a.to_priority * 2 as to_lane from asked as a group by 1, 2
    ) as a
    where not (select s.found from suspect as s)
      and not exists (select from trunkline_internal.lanes as l where l.queue = a.to_queue and l.lane = a.to_lane)
  ),
  kept_apart as (
    insert into trunkline_internal.bodies (day, job_id, kind, body)
    select v_day, a.job_id, 'payload', a.body
    from asked as a
    where a.bytes > trunkline_internal.inline_limit()
      and not (select s.found from suspect as s)
  ),
  stored as (
    insert into trunkline_internal.waiting (
      job_id, sequence, run_at, created_at, payload_day, max_attempts, lane, state, queue, task,
      tenant, correlation_id, tags, payload
    )
    select
      a.job_id,
      case when a.due_at <= v_now then nextval('trunkline_internal.job_sequence') end,
      a.due_at,
      v_now,
      case when a.bytes > trunkline_internal.inline_limit() then v_day end,
      a.attempts,
      a.to_priority * 2,
      case when a.due_at <= v_now then 'ready' else 'scheduled' end,
      a.to_queue,
      a.task,
      coalesce(v_scope, a.tenant),
      a.correlation_id,
      a.tags,
      case when a.bytes <= trunkline_internal.inline_limit() then a.body end
    from asked as a
    where not (select s.found from suspect as s)
  ),
  noted as (
    insert into trunkline_internal.events (
      at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail
    )
    select
      v_now, a.job_id, 0, 'enqueued', case when a.due_at <= v_now then 'ready' else 'scheduled' end,
      a.task, a.to_queue, coalesce(v_scope, a.tenant), session_user,
      jsonb_build_object('run_at', a.due_at, 'priority', a.to_priority, 'correlation_id', a.correlation_id)
    from asked as a
    where a.audit and not (select s.found from suspect as s)
  )
  select a.job_id, true, case when a.due_at <= v_now then 'ready' else 'scheduled' end, a.due_at
  from asked as a
  where not (select s.found from suspect as s)
  order by a.place;
  if not found then
    -- Nothing was written. One by one says why, or registers unknown tasks where that is allowed.
    return query select e.* from trunkline_internal.enqueue_each(p_jobs => p_jobs) as e;
  elsif exists (select from trunkline_internal.sleepers as s) then
    -- A second look at the document, but only while somebody has nothing to do.
    perform trunkline_internal.wake_sleepers(p_queues => array(
      select distinct coalesce(j.queue, t.queue)
      from jsonb_to_recordset(p_jobs) as j (task text, queue text, run_at timestamptz, delay interval)
      join trunkline_internal.tasks as t on t.task = j.task
      where coalesce(j.run_at, v_now + j.delay, v_now) <= v_now + interval '1 minute'
    ));
  end if;
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
comment on function trunkline.enqueue_many(jsonb) is 'Enqueues thousands of jobs in one statement, all or none; answers in the order of the request.';
