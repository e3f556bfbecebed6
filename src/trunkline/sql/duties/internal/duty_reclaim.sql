-- Takes back jobs whose lease or hard limit is over or whose worker is gone, at most p_limit; returns them. The work of trunkline.reclaim.
-- Keeps a position on the expiry, by the rule of claims (next_position), because the dead index entries of millions of
-- ended jobs lie before it. Every twentieth run, about every five minutes, scans from the start.
create or replace function trunkline_internal.duty_reclaim(p_limit integer default 500)
returns setof trunkline.reclaimed_job
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_from timestamptz := '-infinity'::timestamptz;
  v_left timestamptz;
  v_now timestamptz := trunkline.clock();
  v_snapshot pg_snapshot := pg_current_snapshot();
  v_state jsonb;
begin
  select case when d.runs % 20 = 0 then '{}'::jsonb else d.state end
  into v_state
  from trunkline_internal.duties as d
  where d.duty = 'reclaim';
  if v_state ? 'lanes' then
    v_from := to_timestamp(
      trunkline_internal.position_floor(p_position => v_state, p_name => '/expiry', p_snapshot => v_snapshot) / 1e6
    );
  end if;
  return query
  select l.* from trunkline_internal.reclaim_stale(p_now => v_now, p_from => v_from, p_limit => p_limit) as l;
  -- Jobs left below now were locked by another call or are beyond the limit. The position stays before them, so that the
  -- next run finds them. It also stays before the start of this transaction: a lease that expired by then was taken by a
  -- transaction with a lower id.
  select min(r.lease_expires_at)
  into v_left
  from trunkline_internal.running as r
  where r.lease_expires_at <= v_now and r.lease_expires_at >= v_from;
  update trunkline_internal.duties as d
  set state = trunkline_internal.next_position(
    p_position => v_state, p_for => 'reclaim', p_names => array['/expiry'],
    p_covered => array[(extract(epoch from least(v_left, v_now, now())) * 1000000)::bigint],
    p_snapshot => v_snapshot, p_now => v_now
  )
  where d.duty = 'reclaim';
end;
$$;
comment on function trunkline_internal.duty_reclaim(integer) is 'Takes back jobs whose lease or hard limit is over or whose worker is gone, at most p_limit; returns them. The work of trunkline.reclaim.';
