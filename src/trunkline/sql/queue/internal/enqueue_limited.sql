-- Enqueues a document of jobs without unique or idempotency keys, some of limited tasks, in one statement; answers in its order.
-- none -> ready | scheduled. As enqueue_many does it for jobs without limits: one pass over the document. Each kind of
-- job, by its task and the values of the keys in its limits' names, is looked at once. What is suspicious stops the
-- whole statement from writing and is left to enqueue_each, which says what is wrong with which job.
create or replace function trunkline_internal.enqueue_limited(p_jobs jsonb)
returns setof trunkline.enqueued
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_nestloop = off
as $$
declare
  v_day date;
  v_ids record;
  v_max_bytes integer := trunkline_internal.setting(p_name => 'max_payload_bytes')::integer;
  v_now timestamptz;
  v_scope text := trunkline.tenant_scope();
  v_sees_all boolean := current_setting('transaction_isolation') = 'read committed';
  v_tasks text[] := array(select distinct j.job ->> 'task' from jsonb_array_elements(p_jobs) as j (job));
begin
  perform trunkline_internal.check_queues_open(p_jobs => p_jobs);
  perform pg_current_xact_id();
  v_now := trunkline.clock();
  v_day := (v_now at time zone 'UTC')::date;
  v_ids := trunkline_internal.new_id_series(p_now => v_now);
  return query
  with asked as materialized (
    select
      j.task, j.queue, j.run_at, j.delay, j.tenant, j.correlation_id, j.tags, j.cost, j.place,
      t.task is not null as known,
      t.audit,
      t.keys,
      case
        when t.keys is null then null
        when cardinality(t.keys) = 0 then ''
        when cardinality(t.keys) = 1 then coalesce(
          case when t.keys[1] = 'tenant' then coalesce(v_scope, j.tenant, j.payload ->> 'tenant') else j.payload ->> t.keys[1] end, ''
        )
        else jsonb_object(t.keys, array(
          select case when k.key = 'tenant' then coalesce(v_scope, j.tenant, j.payload ->> 'tenant') else j.payload ->> k.key end
          from unnest(t.keys) as k (key)
        ))::text
      end as kind,
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
        tenant text, correlation_id text, max_attempts integer, tags text[],
        cost jsonb
      )
    ) with ordinality as j (
      task, payload, queue, priority, run_at, delay, tenant, correlation_id, max_attempts, tags, cost, place
    )
    left join (
      select t.*, case when cardinality(t.limits) > 0 then trunkline_internal.limit_keys(p_limits => t.limits) end as keys
      from trunkline_internal.tasks as t
      where t.task = any(v_tasks)
    ) as t on t.task = j.task
    -- The join may turn the order round, and the sequence numbers are drawn in this one.
    order by j.place
  ),
  kinds as materialized (
    select
      a.task, a.kind, max(a.keys) as keys, count(*) as jobs, min(a.place) - 1 as first, row_number() over () as place
    from asked as a
    where a.kind is not null
    group by a.task, a.kind
  ),
  arrays as (
    select
      array_agg(k.task order by k.place) as tasks,
      array_agg(
        case cardinality(k.keys)
          when 0 then '{}'::jsonb
          when 1 then jsonb_build_object(k.keys[1], k.kind)
          else k.kind::jsonb
        end
        order by k.place
      ) as keys,
      array_agg(k.jobs order by k.place) as jobs,
      array_agg(k.first order by k.place) as firsts
    from kinds as k
  ),
  resolved as materialized (
    select r.place, r.requests, r.tokens, r.units, r.limit_ids, r.bucket_ids, r.most, r.low_below, v_now + r.delay as put_off
    from arrays as a
    cross join lateral trunkline_internal.resolve_costs(
      p_tasks => a.tasks, p_keys => a.keys, p_jobs => a.jobs, p_firsts => a.firsts, p_now => v_now
    ) as r
    where not r.is_partial
  ),
  limited as materialized (
    select
      a.*,
      r.low_below,
      r.most,
      r.requests, r.tokens, r.units, r.limit_ids, r.bucket_ids,
      case when r.put_off > a.due_at then r.put_off else a.due_at end as starts_at
    from asked as a
    left join kinds as k on k.task = a.task and k.kind = a.kind
    left join resolved as r on r.place = k.place
    order by a.place
  ),
  -- Conservative: whatever might be refused stops the whole statement from writing; the pass below
  -- then says what it was.
  suspect as materialized (
    select exists (
      select
      from limited as a
      where not a.known
        or (a.kind is null and a.cost is not null)
        or (a.kind is not null and a.bucket_ids is null)
        or a.to_priority < a.low_below
        or case
          when a.cost is null then false
          when not trunkline_internal.is_cost(p_cost => a.cost) then true
          else coalesce((a.cost ->> 'requests')::bigint, 1) > (a.most).requests
            or (a.cost ->> 'tokens')::bigint > (a.most).tokens
            or (a.cost ->> 'units')::bigint > (a.most).units
        end
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
      tenant, correlation_id, tags, payload, bucket, cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids
    )
    select
      a.job_id,
      case when a.starts_at <= v_now then nextval('trunkline_internal.job_sequence') end,
      a.starts_at,
      v_now,
      case when a.bytes > trunkline_internal.inline_limit() then v_day end,
      a.attempts,
      a.to_priority * 2,
      case when a.starts_at <= v_now then 'ready' else 'scheduled' end,
      a.to_queue,
      a.task,
      coalesce(v_scope, a.tenant),
      a.correlation_id,
      a.tags,
      case when a.bytes <= trunkline_internal.inline_limit() then a.body end,
      a.bucket_ids[1],
      case when a.cost is null then a.requests else coalesce((a.cost ->> 'requests')::bigint, 1) end,
      case when a.cost is null then a.tokens else coalesce((a.cost ->> 'tokens')::bigint, 0) end,
      case when a.cost is null then a.units else coalesce((a.cost ->> 'units')::bigint, 0) end,
      a.limit_ids,
      a.bucket_ids
    from limited as a
    where not (select s.found from suspect as s)
  ),
  opened as (
    insert into trunkline_internal.bucket_queues (bucket, limit_id, queue)
    select o.bucket, o.limit_id, o.queue
    from (
      select distinct a.bucket_ids[1] as bucket, a.limit_ids[1] as limit_id, a.to_queue as queue
      from limited as a
      where a.bucket_ids is not null and a.starts_at <= v_now and not (select s.found from suspect as s)
    ) as o
    where not (v_sees_all and exists (
      select from trunkline_internal.bucket_queues as g where g.bucket = o.bucket and g.queue = o.queue and not g.closing offset 0
    ))
  ),
  noted as (
    insert into trunkline_internal.events (
      at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail
    )
    select
      v_now, a.job_id, 0, 'enqueued', case when a.starts_at <= v_now then 'ready' else 'scheduled' end,
      a.task, a.to_queue, coalesce(v_scope, a.tenant), session_user,
      jsonb_build_object('run_at', a.starts_at, 'priority', a.to_priority, 'correlation_id', a.correlation_id)
    from limited as a
    where a.audit and not (select s.found from suspect as s)
  )
  select a.job_id, true, case when a.starts_at <= v_now then 'ready' else 'scheduled' end, a.starts_at
  from limited as a
  where not (select s.found from suspect as s)
  order by a.place;
  if not found then
    return query select e.* from trunkline_internal.enqueue_each(p_jobs => p_jobs) as e;
    return;
  end if;
  if exists (select from trunkline_internal.sleepers as s) then
    -- A second look at the document, but only while somebody has nothing to do.
    perform trunkline_internal.wake_sleepers(p_queues => array(
      select distinct coalesce(j.queue, t.queue)
      from jsonb_to_recordset(p_jobs) as j (task text, queue text, run_at timestamptz, delay interval)
      join trunkline_internal.tasks as t on t.task = j.task
      where coalesce(j.run_at, v_now + j.delay, v_now) <= v_now + interval '1 minute'
    ));
  end if;
end;
$$;
comment on function trunkline_internal.enqueue_limited(jsonb) is 'Enqueues a document of jobs without unique or idempotency keys, some of limited tasks, in one statement; answers in its order.';
