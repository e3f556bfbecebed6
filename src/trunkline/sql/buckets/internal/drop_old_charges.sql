-- Removes idle states of buckets, counted adjustments, old grants and old hours of quotas, at most p_limit of each; returns how many rows.
create or replace function trunkline_internal.drop_old_charges(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_buckets bigint[];
  v_removed integer;
  v_rows integer;
begin
  delete from trunkline_internal.bucket_adjustments as c
  where c.ctid = any(array(
    select o.ctid
    from trunkline_internal.bucket_adjustments as o
    left join lateral (
      select s.adjusted_below from trunkline_internal.bucket_states as s where s.bucket = o.bucket order by s.revision desc limit 1
    ) as s on true
    -- After two hours no window counts an adjustment, but a quota still does.
    where o.xid < s.adjusted_below
      or (
        o.at < extract(epoch from p_now) - 7200
        and not exists (
          select from unnest(o.holders) as h (holder) where trunkline_internal.holder_is_live(p_holder => h.holder, p_now => p_now)
        )
        and not exists (
          select
          from trunkline_internal.bucket_names as n
          join trunkline_internal.limits as l on l.limit_id = trunkline_internal.limit_of(p_bucket => n.bucket, p_limit => n.limit_id)
          where n.bucket = o.bucket and l.quota is not null
        )
      )
    limit p_limit
  ));
  get diagnostics v_removed = row_count;
  v_buckets := array(
    select s.bucket
    from trunkline_internal.bucket_states as s
    where not exists (select from trunkline_internal.bucket_queues as g where g.bucket = s.bucket)
    limit p_limit
  );
  v_buckets := array(select g.bucket from unnest(v_buckets) as g (bucket) where trunkline_internal.try_lock_bucket(p_bucket => g.bucket));
  delete from trunkline_internal.bucket_states as s
  where s.bucket = any(v_buckets)
    and coalesce(s.charged_at[cardinality(s.charged_at)], 0) < extract(epoch from p_now) - 3602
    and coalesce(s.paused_until, s.refused_at, '-infinity'::timestamptz) < p_now - interval '1 hour'
    -- The state keeps the sum of a quota, and marks the buckets whose hours are to be merged.
    and coalesce(s.spent_hour, 0) < floor(extract(epoch from p_now) / 3600) - 1
    -- Without the state it would be unknown which of them were counted.
    and not exists (select from trunkline_internal.bucket_adjustments as c where c.bucket = s.bucket)
    and not exists (
      select
      from unnest(s.holders) as h (holder)
      where trunkline_internal.holder_is_live(p_holder => h.holder, p_now => p_now)
    );
  get diagnostics v_rows = row_count;
  v_removed := v_removed + v_rows;
  delete from trunkline_internal.bucket_names as n
  where n.seen_at < p_now - interval '1 day'
    and n.bucket = any(v_buckets)
    and not exists (select from trunkline_internal.bucket_states as s where s.bucket = n.bucket)
    and not exists (select from trunkline_internal.breakers as b where b.bucket = n.bucket)
    and not exists (select from trunkline_internal.quota_hours as q where q.bucket = n.bucket)
    and not exists (select from trunkline_internal.set_aside as a where a.bucket = n.bucket);
  return v_removed
    + trunkline_internal.drop_old_grants(p_limit => p_limit, p_now => p_now)
    + trunkline_internal.merge_quota_hours(p_limit => p_limit, p_now => p_now);
end;
$$;
comment on function trunkline_internal.drop_old_charges(integer, timestamptz) is 'Removes idle states of buckets, counted adjustments, old grants and old hours of quotas, at most p_limit of each; returns how many rows.';
