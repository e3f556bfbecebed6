-- Stores a job of a limited task for each payload and tells how many: fewer than asked where one of them is not ordinary.
-- none -> ready | scheduled. Each kind of payload, by the values of the keys in the limits' names, is looked at once.
-- The quick way of enqueue_batch: the caller takes back what was stored when it is not all of them.
create or replace function trunkline_internal.store_limited(
  p_policy trunkline_internal.tasks,
  p_payloads jsonb,
  p_ids uuid[],
  p_tenant text,
  p_now timestamptz,
  out stored bigint,
  out state text,
  out run_at timestamptz
)
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
  v_key text;
  v_keys text[] := trunkline_internal.limit_keys(p_limits => p_policy.limits);
  v_sees_all boolean := current_setting('transaction_isolation') = 'read committed';
begin
  -- The tenant is the same for all of them.
  v_key := case when cardinality(v_keys) = 1 and not ('tenant' = any(v_keys) and p_tenant is not null) then v_keys[1] end;
  with asked as materialized (
    select
      j.job_id, j.payload, j.place,
      case
        when cardinality(v_keys) = 0 then ''
        when v_key is not null then coalesce(j.payload ->> v_key, '')
        else jsonb_object(v_keys, array(
          select case when k.key = 'tenant' then coalesce(p_tenant, j.payload ->> 'tenant') else j.payload ->> k.key end
          from unnest(v_keys) as k (key)
        ))::text
      end as kind
    from rows from (unnest(p_ids), jsonb_array_elements(p_payloads)) with ordinality as j (job_id, payload, place)
  ),
  kinds as materialized (
    select a.kind, count(*) as jobs, min(a.place) - 1 as first, row_number() over () as place from asked as a group by a.kind
  ),
  arrays as (
    select
      array_agg(p_policy.task order by k.place) as tasks,
      array_agg(
        case
          when cardinality(v_keys) = 0 then '{}'::jsonb
          when v_key is not null then jsonb_build_object(v_key, k.kind)
          else k.kind::jsonb
        end
        order by k.place
      ) as keys,
      array_agg(k.jobs order by k.place) as jobs,
      array_agg(k.first order by k.place) as firsts
    from kinds as k
  ),
  resolved as materialized (
    select r.place, r.requests, r.tokens, r.units, r.limit_ids, r.bucket_ids, p_now + r.delay as put_off
    from arrays as a
    cross join lateral trunkline_internal.resolve_costs(
      p_tasks => a.tasks, p_keys => a.keys, p_jobs => a.jobs, p_firsts => a.firsts, p_now => p_now
    ) as r
    where r.bucket_ids is not null and not r.is_partial and p_policy.priority >= coalesce(r.low_below, -50)
  ),
  opened as (
    insert into trunkline_internal.bucket_queues (bucket, limit_id, queue)
    select distinct r.bucket_ids[1], r.limit_ids[1], p_policy.queue
    from resolved as r
    where (r.put_off is null or r.put_off <= p_now)
      and not (v_sees_all and exists (
        select
        from trunkline_internal.bucket_queues as g
        where g.bucket = r.bucket_ids[1] and g.queue = p_policy.queue and not g.closing
        offset 0
      ))
  ),
  kept as (
    insert into trunkline_internal.waiting (
      job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, tenant, payload, bucket,
      cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids
    )
    select
      a.job_id,
      case when coalesce(a.put_off <= p_now, true) then nextval('trunkline_internal.job_sequence') end,
      coalesce(a.put_off, p_now),
      p_now,
      p_policy.max_attempts,
      p_policy.priority * 2,
      case when coalesce(a.put_off <= p_now, true) then 'ready' else 'scheduled' end,
      p_policy.queue, p_policy.task, p_tenant, a.payload, a.bucket_ids[1],
      a.requests, a.tokens, a.units, a.limit_ids, a.bucket_ids
    from (
      select a.job_id, a.payload, r.requests, r.tokens, r.units, r.limit_ids, r.bucket_ids, r.put_off
      from asked as a
      join kinds as k on k.kind = a.kind
      join resolved as r on r.place = k.place
      where jsonb_typeof(a.payload) = 'object' and pg_column_size(a.payload) <= trunkline_internal.inline_limit()
      -- The joins may turn the order round, and the sequence numbers are drawn in this one.
      order by a.place
    ) as a
    returning waiting.state, waiting.run_at
  )
  select count(*), coalesce(min(k.state), 'ready'), coalesce(min(k.run_at), p_now) into stored, state, run_at from kept as k;
end;
$$;
comment on function trunkline_internal.store_limited(trunkline_internal.tasks, jsonb, uuid[], text, timestamptz) is 'Stores a job of a limited task for each payload and tells how many: fewer than asked where one of them is not ordinary.';
