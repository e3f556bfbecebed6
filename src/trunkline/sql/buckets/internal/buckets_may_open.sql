-- Returns whether a scan of the buckets of these queues may find a job: false if there are few and all are known to be spent or paused.
-- Most of the cost of such a scan is the start of its statements, which would slow down other work at each claim.
create or replace function trunkline_internal.buckets_may_open(p_queues text[], p_now timestamptz)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_few constant integer := 8;
  v_bucket record;
  v_looked integer := 0;
  v_state record;
begin
  for v_bucket in select g.bucket, g.limit_id from trunkline_internal.bucket_queues as g where g.queue = any(p_queues) limit c_few loop
    select s.free_at, s.paused_until, s.computed_by, s.adjusted_below
    into v_state
    from trunkline_internal.bucket_states as s
    where s.bucket = v_bucket.bucket
    order by s.revision desc
    limit 1;
    if not found or (v_state.paused_until is null or v_state.paused_until <= p_now) and (
      v_state.free_at is null
      or v_state.free_at <= p_now
      or exists (
        select
        from trunkline_internal.limits as l
        where l.limit_id = trunkline_internal.limit_of(p_bucket => v_bucket.bucket, p_limit => v_bucket.limit_id)
          and l.updated_at > v_state.computed_by
      )
      or exists (
        select
        from trunkline_internal.bucket_adjustments as c
        where c.bucket = v_bucket.bucket and c.xid >= coalesce(v_state.adjusted_below, '0'::xid8)
      )
    ) then
      return true;
    end if;
    v_looked := v_looked + 1;
  end loop;
  return v_looked = c_few;
end;
$$;
comment on function trunkline_internal.buckets_may_open(text[], timestamptz) is 'Returns whether a scan of the buckets of these queues may find a job: false if there are few and all are known to be spent or paused.';
