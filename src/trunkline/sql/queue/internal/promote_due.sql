-- Makes due jobs ready, the earliest first, as many as allowed; tells how many and up to which due time it looked.
-- scheduled -> ready with a new sequence number. Locks the rows it moves, skips locked ones.
-- Called by claim (bounded, from a kept position) and by the duty promote (from the start).
create or replace function trunkline_internal.promote_due(
  p_now timestamptz,
  p_from timestamptz,
  p_limit integer,
  out promoted integer,
  out covered timestamptz
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- Locking assigns the transaction id before the first number is drawn. The numbers are drawn in
  -- a step of their own, so that they follow the due times.
  with due as materialized (
    select w.ctid as tid, w.run_at
    from trunkline_internal.waiting as w
    where w.state = 'scheduled' and w.run_at >= p_from and w.run_at <= p_now
    order by w.run_at
    limit p_limit
    for update of w skip locked
  ),
  numbered as materialized (
    select d.tid, d.run_at, nextval('trunkline_internal.job_sequence') as sequence from due as d
  ),
  moved as (
    update trunkline_internal.waiting as w
    set state = 'ready', sequence = n.sequence, reason = null
    from numbered as n
    where w.ctid = n.tid
  )
  select count(*)::integer, max(n.run_at) into promoted, covered from numbered as n;
  if promoted < p_limit then
    covered := p_now;
  end if;
end;
$$;
comment on function trunkline_internal.promote_due(timestamptz, timestamptz, integer) is 'Makes due jobs ready, the earliest first, as many as allowed; tells how many and up to which due time it looked.';
