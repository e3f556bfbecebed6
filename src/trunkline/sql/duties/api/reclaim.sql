-- Duty: takes back jobs whose lease, hard limit or worker is over, at most p_limit a run; returns them.
-- Guarded: while another session is at it, it returns nothing at once. Keeps a position on the expiry,
-- by the rule of claims (next_position): dead index entries of millions of ended jobs lie before it.
-- Every twentieth run, about every five minutes, looks from the start.
create or replace function trunkline.reclaim(p_limit integer default 500)
returns setof trunkline.reclaimed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_from timestamptz := '-infinity'::timestamptz;
  v_left timestamptz;
  v_lost trunkline.reclaimed_job[];
  v_now timestamptz;
  v_scope text := trunkline.tenant_scope();
  v_snapshot pg_snapshot;
  v_state jsonb;
begin
  perform trunkline_internal.require_read_committed();
  if p_limit is null or p_limit not between 1 and 10000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 10000)
    );
  end if;
  -- Before this transaction has an id of its own, which would hold the snapshot's xmin.
  v_snapshot := pg_current_snapshot();
  if not trunkline_internal.duty_begin(p_duty => 'reclaim') then
    return;
  end if;
  begin
    select case when d.runs % 20 = 0 then '{}'::jsonb else d.state end
    into v_state
    from trunkline_internal.duties as d
    where d.duty = 'reclaim';
    v_now := trunkline.clock();
    if v_state ? 'lanes' then
      v_from := to_timestamp(
        trunkline_internal.position_floor(p_position => v_state, p_name => '/expiry', p_snapshot => v_snapshot) / 1e6
      );
    end if;
    v_lost := array(
      select l from trunkline_internal.reclaim_stale(p_now => v_now, p_from => v_from, p_limit => p_limit) as l
    );
    -- What is left below now was held by another call or is beyond the limit: the position stays
    -- before it, so that the next run finds it. And before the start of this transaction: what
    -- expired until then was claimed by a transaction with a lower id.
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
    perform trunkline_internal.duty_end(p_duty => 'reclaim', p_rows => cardinality(v_lost));
  exception
    when others then
      v_lost := '{}';
      perform trunkline_internal.duty_failed(p_duty => 'reclaim', p_sqlstate => sqlstate, p_message => sqlerrm);
  end;
  -- Everybody's jobs are taken back, but a caller that acts for one tenant is told of his own.
  return query
  select l.*
  from unnest(v_lost) as l
  where v_scope is null
    or trunkline_internal.visible_live_state(p_job => l.job_id, p_scope => v_scope) is not null
    or trunkline_internal.visible_end(p_job => l.job_id, p_scope => v_scope) is not null;
end;
$$;
comment on function trunkline.reclaim(integer) is 'Duty: takes back jobs whose lease, hard limit or worker is over, at most p_limit a run; returns them.';
