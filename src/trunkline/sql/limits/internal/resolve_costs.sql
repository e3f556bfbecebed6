-- Returns for each kind of job of a batch its cost and the bucket of each of its limits, and asks the limits to admit the jobs.
-- A kind is a task with the values of the keys in the names of its limits, the tenant among them: p_keys. p_jobs is the
-- number of its jobs, p_priorities their lowest priority, p_firsts the index of the first. Cost, limit_ids and bucket_ids
-- are those of resolve_cost for a job that names no cost. They are null if it would refuse such a job; most is the largest
-- cost that a job may name itself. is_partial: some jobs of the kind may be delayed or refused and others not.
-- resolve_cost does the same for one job and remains, because a single limited enqueue takes 150 µs with it and 510 µs with
-- this function (PostgreSQL 18). tests/flow/test_enqueue_batches.py holds their results equal.
create or replace function trunkline_internal.resolve_costs(
  p_tasks text[],
  p_keys jsonb[],
  p_jobs bigint[],
  p_priorities integer[],
  p_firsts bigint[],
  p_now timestamptz
)
returns table (
  place bigint,
  requests bigint,
  tokens bigint,
  units bigint,
  limit_ids integer[],
  bucket_ids bigint[],
  most trunkline_internal.amounts,
  delay interval,
  is_partial boolean
)
language plpgsql
volatile
rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
as $$
begin
  return query
  with templates as materialized (
    select
      t.task,
      i.nth,
      i.template,
      t.cost,
      cardinality(t.limits) as limits,
      strpos(i.template, '{') > 0 as has_keys,
      -- Most names have one key at most, and are filled in without a function call.
      regexp_match(i.template, '^([^{}]*)[{]([^{}]+)[}]([^{}]*)$') as parts,
      l.limit_id,
      num_nonnulls(l.backpressure_threshold, l.depth_limit, l.quota) > 0 as is_guarded,
      num_nonnulls(l.tokens_per_minute, l.tokens_per_hour, l.quota) > 0 as is_learning,
      case when l.limit_id is not null then trunkline_internal.most_at_once(p_limit => l) end as most
    from (select distinct a.task from unnest(p_tasks) as a (task)) as a
    join trunkline_internal.tasks as t on t.task = a.task
    cross join lateral unnest(t.limits) with ordinality as i (template, nth)
    left join trunkline_internal.limits as l on l.name = i.template
  ),
  named as (
    select
      k.place, k.task, k.jobs, k.priority, k.first, t.nth, t.has_keys, t.limit_id, t.is_guarded, t.is_learning, t.most,
      case
        when not t.has_keys then t.template
        when t.parts is not null
          then t.parts[1] || trunkline_internal.limit_value(p_value => nullif(k.keys ->> t.parts[2], '')) || t.parts[3]
        else trunkline_internal.fill_limit_name(p_template => t.template, p_payload => k.keys, p_tenant => null)
      end as name
    from unnest(p_tasks, p_keys, p_jobs, p_priorities, p_firsts) with ordinality as k (task, keys, jobs, priority, first, place)
    join templates as t on t.task = k.task
  ),
  found as materialized (
    -- Only the numbers that are needed: reading fields from a whole row of limits costs more than the rest.
    select
      n.place, n.task, n.jobs, n.priority, n.first, n.nth, n.name,
      trunkline_internal.bucket_of(p_name => n.name) as bucket,
      coalesce(e.limit_id, n.limit_id) as limit_id,
      coalesce(e.is_guarded, n.is_guarded) as is_guarded,
      coalesce(e.is_learning, n.is_learning) as is_learning,
      coalesce(e.most, n.most) as most
    from named as n
    -- A limit of the filled-in name takes precedence over the one with keys.
    left join lateral (
      select
        l.limit_id,
        num_nonnulls(l.backpressure_threshold, l.depth_limit, l.quota) > 0 as is_guarded,
        num_nonnulls(l.tokens_per_minute, l.tokens_per_hour, l.quota) > 0 as is_learning,
        trunkline_internal.most_at_once(p_limit => l) as most
      from trunkline_internal.limits as l
      where n.has_keys and l.bucket = trunkline_internal.bucket_of(p_name => n.name)
    ) as e on true
    where octet_length(n.name) <= 400
  ),
  buckets as materialized (
    select
      f.bucket, f.limit_id, f.is_guarded, min(f.name) as name, sum(f.jobs)::bigint as jobs,
      min(f.priority) as priority, min(f.first) as first
    from found as f
    where f.limit_id is not null
    group by f.bucket, f.limit_id, f.is_guarded
  ),
  new_names as (
    insert into trunkline_internal.bucket_names (bucket, limit_id, name, seen_at)
    select g.bucket, g.limit_id, g.name, p_now
    from buckets as g
    where not exists (
      -- An index scan for each bucket: a limit may have thousands, and a join would read all their names.
      select from trunkline_internal.bucket_names as n where n.bucket = g.bucket and n.limit_id + 0 = g.limit_id offset 0
    )
  ),
  guarded as (
    select
      array_agg(g.bucket) as buckets, array_agg(g.limit_id) as limits, array_agg(g.jobs) as jobs,
      array_agg(g.priority) as priorities, array_agg(g.first) as firsts, array_agg(g.name) as names
    from buckets as g
    where g.is_guarded
  ),
  admitted as materialized (
    select d.bucket, d.delay, a.is_partial
    from guarded as g
    cross join lateral trunkline_internal.admit(
      p_buckets => g.buckets, p_limits => g.limits, p_jobs => g.jobs, p_priorities => g.priorities, p_firsts => g.firsts,
      p_accepted => false, p_now => p_now, p_names => g.names
    ) as a
    cross join lateral unnest(g.buckets, a.delays) as d (bucket, delay)
    where g.buckets is not null
  ),
  asked as (
    select
      f.place,
      f.task,
      count(f.limit_id) as known,
      array_agg(f.limit_id order by f.nth) as limit_ids,
      array_agg(f.bucket order by f.nth) as bucket_ids,
      row(min((f.most).requests), min((f.most).tokens), min((f.most).units))::trunkline_internal.amounts as most,
      -- The first limit that counts tokens or has a quota.
      (array_agg(f.bucket order by f.nth) filter (where f.is_learning))[1] as learning,
      max(a.delay) as delay,
      coalesce(bool_or(a.is_partial), false) as is_partial
    from found as f
    left join admitted as a on a.bucket = f.bucket
    group by f.place, f.task
  ),
  computed as (
    select
      a.*,
      t.limits,
      coalesce((t.cost ->> 'requests')::bigint, 1) as requests,
      -- Zero: nothing has been learned.
      case
        when coalesce(e.tokens, 0) = 0 then coalesce((t.cost ->> 'tokens')::bigint, 0)
        else least(e.tokens, (a.most).tokens)
      end as tokens,
      case
        when coalesce(e.units, 0) = 0 then coalesce((t.cost ->> 'units')::bigint, 0)
        else least(e.units, (a.most).units)
      end as units
    from asked as a
    join templates as t on t.task = a.task and t.nth = 1
    left join trunkline_internal.estimates as e on e.task = a.task and e.bucket = a.learning
  )
  select
    r.place,
    case when r.fits then r.requests end,
    case when r.fits then r.tokens end,
    case when r.fits then r.units end,
    case when r.fits then r.limit_ids end,
    case when r.fits then r.bucket_ids end,
    r.most, r.delay, r.is_partial
  from (
    select
      c.*,
      c.known = c.limits and coalesce(
        c.requests <= (c.most).requests and c.tokens <= (c.most).tokens and c.units <= (c.most).units, true
      ) as fits
    from computed as c
  ) as r;
end;
$$;
comment on function trunkline_internal.resolve_costs(text[], jsonb[], bigint[], integer[], bigint[], timestamptz) is 'Returns for each kind of job of a batch its cost and the bucket of each of its limits, and asks the limits to admit the jobs.';
