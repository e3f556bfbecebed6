-- Sends jobs at the heads of gates' lanes that are larger than their limit now ever gives to dead; tells how many.
-- ready -> dead. They were refused at enqueue, had the limit been as low then; now they would stand in the way of
-- everybody behind them for ever. Heads alone are looked at, the next ones where a head went: at most c_most in a call,
-- the rest at the next. Skips locked rows; takes no gate, since nothing is charged.
create or replace function trunkline_internal.bury_misfits(p_gates bigint[], p_limits integer[], p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_most constant integer := 1000;
  v_buried integer := 0;
  v_gates bigint[] := p_gates;
  v_limits integer[] := p_limits;
  v_look integer := 1;
  v_rows integer;
begin
  while v_gates is not null and v_buried < c_most loop
    with heads as materialized (
      select w.tid, g.limit_id
      from unnest(v_gates, v_limits) as g (gate, limit_id)
      join trunkline_internal.limits as m
        on m.limit_id = g.limit_id and num_nonnulls(variadic trunkline_internal.most_at_once(p_limit => m)) > 0
      cross join lateral (select distinct q.queue from trunkline_internal.gate_queues as q where q.gate = g.gate) as q
      join trunkline_internal.lanes as l on l.queue = q.queue
      cross join lateral (
        select w.ctid as tid, w.need
        from trunkline_internal.waiting as w
        where w.gate = g.gate and w.queue = q.queue and w.lane = l.lane and w.state = 'ready'
        order by w.sequence
        limit v_look
        for update of w skip locked
      ) as w
      where trunkline_internal.never_fits(p_limit => m, p_requests => w.need[1], p_tokens => w.need[2], p_units => w.need[3])
      limit c_most
    ),
    taken as (
      delete from trunkline_internal.waiting as w
      where w.ctid = any(array(select h.tid from heads as h))
      returning w.*
    ),
    buried as (
      insert into trunkline_internal.dead (
        job_id, died_at, run_at, created_at, attempt, payload_day, failures, crashes, deferrals,
        max_attempts, priority, queue, task, tenant, unique_key, correlation_id, reason, retry_of, tags,
        payload, last_error, need
      )
      select
        t.job_id, p_now, t.run_at, t.created_at, t.attempt, t.payload_day, t.failures, t.crashes, t.deferrals,
        t.max_attempts, t.lane >> 1, t.queue, t.task, t.tenant, t.unique_key, t.correlation_id, 'cost_over_limit',
        t.retry_of, t.tags, t.payload, t.last_error, t.need
      from taken as t
    ),
    freed as (
      delete from trunkline_internal.unique_keys as k
      where k.job_id = any(array(select t.job_id from taken as t where t.unique_key is not null))
    ),
    noted as (
      insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
      select
        p_now, t.job_id, t.attempt, 'outgrown', 'dead', t.task, t.queue, t.tenant, session_user,
        jsonb_build_object(
          'reason', 'cost_over_limit',
          'limit', (select n.name from trunkline_internal.gate_names as n where n.gate = t.gate limit 1),
          'requests', t.need[1], 'tokens', t.need[2], 'units', t.need[3]
        )
      from taken as t
    )
    select
      count(*)::integer, array_agg(distinct t.gate)
    into v_rows, v_gates
    from taken as t;
    v_limits := array(
      select p_limits[array_position(p_gates, g.gate)] from unnest(v_gates) with ordinality as g (gate, place) order by g.place
    );
    v_buried := v_buried + v_rows;
    -- Where one went there may be more.
    v_look := 100;
  end loop;
  return v_buried;
end;
$$;
comment on function trunkline_internal.bury_misfits(bigint[], integer[], timestamptz) is 'Sends jobs at the heads of gates'' lanes that are larger than their limit now ever gives to dead; tells how many.';
