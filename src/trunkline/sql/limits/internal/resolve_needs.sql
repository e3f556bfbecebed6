-- Says for the jobs of a batch what they take of their limits, each kind of them once, and asks the limits whether they may come.
-- A kind is a task with the values of the keys in its limits' names: p_keys has them, the tenant among them, p_jobs how
-- many jobs, p_firsts the first of them. need is as in resolve_need for a job that says nothing about its cost, and null
-- where something is wrong: who asks for that job alone is told. most bounds what a job may say itself; delay is by how
-- much they are put off; priorities below low_below, and is_partial kinds, are to be asked for one by one.
create or replace function trunkline_internal.resolve_needs(
  p_tasks text[],
  p_keys jsonb[],
  p_jobs bigint[],
  p_firsts bigint[],
  p_now timestamptz
)
returns table (place bigint, need bigint[], most bigint[], delay interval, low_below integer, is_partial boolean)
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
      -- The name of most has one key at most: put together without a function.
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
      k.place, k.task, k.jobs, k.first, t.nth, t.has_keys, t.limit_id, t.is_guarded, t.is_learning, t.most,
      case
        when not t.has_keys then t.template
        when t.parts is not null
          then t.parts[1] || trunkline_internal.limit_value(p_value => nullif(k.keys ->> t.parts[2], '')) || t.parts[3]
        else trunkline_internal.fill_limit_name(p_template => t.template, p_payload => k.keys, p_tenant => null)
      end as name
    from unnest(p_tasks, p_keys, p_jobs, p_firsts) with ordinality as k (task, keys, jobs, first, place)
    join templates as t on t.task = k.task
  ),
  found as materialized (
    -- Numbers alone: to take a limit's row apart again and again costs more than all the rest.
    select
      n.place, n.task, n.jobs, n.first, n.nth, n.name,
      trunkline_internal.bucket_of(p_name => n.name) as bucket,
      coalesce(e.limit_id, n.limit_id) as limit_id,
      coalesce(e.is_guarded, n.is_guarded) as is_guarded,
      coalesce(e.is_learning, n.is_learning) as is_learning,
      coalesce(e.most, n.most) as most
    from named as n
    -- A limit of the filled-in name goes before the one with keys.
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
      f.bucket, f.limit_id, f.is_guarded, min(f.name) as name, sum(f.jobs)::bigint as jobs, min(f.first) as first
    from found as f
    where f.limit_id is not null
    group by f.bucket, f.limit_id, f.is_guarded
  ),
  new_names as (
    insert into trunkline_internal.bucket_names (bucket, limit_id, name, seen_at)
    select g.bucket, g.limit_id, g.name, p_now
    from buckets as g
    where not exists (
      -- One by one, by the bucket: a limit may have thousands of them, and a join would read all names.
      select from trunkline_internal.bucket_names as n where n.bucket = g.bucket and n.limit_id + 0 = g.limit_id offset 0
    )
  ),
  guarded as (
    select array_agg(g.bucket) as buckets, array_agg(g.limit_id) as limits, array_agg(g.jobs) as jobs, array_agg(g.first) as firsts
    from buckets as g
    where g.is_guarded
  ),
  admitted as materialized (
    select a.bucket, a.delay, a.low_below, a.is_partial
    from guarded as g
    cross join lateral trunkline_internal.admit_many(
      p_buckets => g.buckets, p_limits => g.limits, p_jobs => g.jobs, p_firsts => g.firsts, p_now => p_now
    ) as a
  ),
  asked as (
    select
      f.place,
      f.task,
      count(f.limit_id) as known,
      array_agg(array[f.limit_id::bigint, f.bucket] order by f.nth) as buckets,
      array[min(f.most[1]), min(f.most[2]), min(f.most[3])] as most,
      -- The first that counts tokens or has a quota.
      (array_agg(f.bucket order by f.nth) filter (where f.is_learning))[1] as learning,
      max(a.delay) as delay,
      max(a.low_below) as low_below,
      coalesce(bool_or(a.is_partial), false) as is_partial
    from found as f
    left join admitted as a on a.bucket = f.bucket
    group by f.place, f.task
  ),
  reckoned as (
    select
      a.*,
      t.limits,
      coalesce((t.cost ->> 'requests')::bigint, 1) as requests,
      -- Zero is what nobody has learned.
      case when coalesce(e.tokens, 0) = 0 then coalesce((t.cost ->> 'tokens')::bigint, 0) else least(e.tokens, a.most[2]) end as tokens,
      case when coalesce(e.units, 0) = 0 then coalesce((t.cost ->> 'units')::bigint, 0) else least(e.units, a.most[3]) end as units
    from asked as a
    join templates as t on t.task = a.task and t.nth = 1
    left join trunkline_internal.estimates as e on e.task = a.task and e.bucket = a.learning
  )
  select
    r.place,
    case
      when r.known < r.limits then null
      when r.requests > r.most[1] or r.tokens > r.most[2] or r.units > r.most[3] then null
      else array[r.requests, r.tokens, r.units] || array(select g from unnest(r.buckets) as g)
    end,
    r.most, r.delay, r.low_below, r.is_partial
  from reckoned as r;
end;
$$;
comment on function trunkline_internal.resolve_needs(text[], jsonb[], bigint[], bigint[], timestamptz) is 'Says for the jobs of a batch what they take of their limits, each kind of them once, and asks the limits whether they may come.';
