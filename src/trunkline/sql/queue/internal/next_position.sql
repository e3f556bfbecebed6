-- Advances a claim's position over the jobs that this claim covered, without losing a late commit.
-- A position holds per lane [accepted, candidate, xid, seconds]: two sequence numbers, and the transaction and time at
-- which the candidate was set. A claim scans from the accepted number.
-- Every transaction that drew a number up to the candidate already had its id, and the claim's own id was assigned after it
-- had read the last number. Once no transaction below that id is running, one more scan up to the candidate has seen all
-- of them, and the candidate becomes the accepted number. (xmax of a snapshot would not do: it is one past the last
-- transaction that ended, and running ones can lie beyond it.)
-- If a long transaction delays this by more than 50 ms, the candidate is accepted anyway. "late" then lists the
-- transactions still running, each with the lowest number to scan from when it ends.
-- A claim without a transaction id sets no candidate. The due time of promotions is one more lane, in microseconds.
create or replace function trunkline_internal.next_position(
  p_position jsonb,
  p_for text,
  p_names text[],
  p_covered bigint[],
  p_snapshot pg_snapshot,
  p_now timestamptz
)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_patience constant double precision := '0.05'::double precision;
  v_forced boolean;
  v_lanes jsonb;
  v_late jsonb;
  v_seconds double precision := extract(epoch from p_now)::double precision;
  v_xid bigint := pg_current_xact_id_if_assigned()::text::bigint;
  v_xmax bigint := pg_snapshot_xmax(p_snapshot)::text::bigint;
  v_xmin bigint := pg_snapshot_xmin(p_snapshot)::text::bigint;
begin
  with lane as materialized (
    select
      n.name,
      n.covered,
      coalesce((p_position -> 'lanes' -> n.name ->> 0)::bigint, 0) as accepted,
      (p_position -> 'lanes' -> n.name ->> 1)::bigint as candidate,
      (p_position -> 'lanes' -> n.name ->> 2)::bigint as xid,
      (p_position -> 'lanes' -> n.name ->> 3)::double precision as since
    from unnest(p_names, p_covered) as n (name, covered)
  ),
  judged as materialized (
    select
      l.*,
      -- The 50 ms only count after the candidate's own transaction has ended: from then on the snapshot lists every
      -- transaction that was running before it.
      coalesce(
        l.covered >= l.candidate
        and (v_xmin >= l.xid or (v_xmax > l.xid and v_seconds - l.since > c_patience)),
        false
      ) as passed
    from lane as l
  )
  select
    coalesce(bool_or(j.passed and v_xmin < j.xid), false),
    jsonb_object_agg(
      j.name,
      case
        when v_xid is not null and j.covered is not null and (j.passed or j.candidate is null)
          and j.covered > case when j.passed then j.candidate else j.accepted end
        then jsonb_build_array(case when j.passed then j.candidate else j.accepted end, j.covered, v_xid, v_seconds)
        when j.passed then jsonb_build_array(j.candidate)
        when j.candidate is null then jsonb_build_array(j.accepted)
        else jsonb_build_array(j.accepted, j.candidate, j.xid, j.since)
      end
    )
  into v_forced, v_lanes
  from judged as j;
  if not v_forced and not coalesce(p_position ? 'late', false) then
    return jsonb_build_object('for', p_for, 'lanes', v_lanes);
  end if;
  with kept as (
    -- The scan for an ended transaction is complete when it has reached the accepted number.
    select
      e.key as xid,
      f.key as name,
      case
        when pg_visible_in_snapshot(e.key::xid8, p_snapshot) then coalesce(n.covered, f.value::bigint)
        else f.value::bigint
      end as floor
    from jsonb_each(coalesce(p_position -> 'late', '{}'::jsonb)) as e
    cross join lateral jsonb_each_text(e.value) as f
    left join unnest(p_names, p_covered) as n (name, covered) on n.name = f.key
    where not (
      pg_visible_in_snapshot(e.key::xid8, p_snapshot)
      and coalesce(n.covered >= coalesce((p_position -> 'lanes' -> f.key ->> 0)::bigint, 0), false)
    )
    union all
    select x.xid::text, n.name, coalesce((p_position -> 'lanes' -> n.name ->> 0)::bigint, 0)
    from unnest(p_names) as n (name)
    cross join pg_snapshot_xip(p_snapshot) as x (xid)
    where (p_position -> 'lanes' -> n.name ->> 2)::bigint > x.xid::text::bigint
      and (v_lanes -> n.name ->> 0)::bigint > coalesce((p_position -> 'lanes' -> n.name ->> 0)::bigint, 0)
  ),
  lowest as (
    select k.xid, k.name, min(k.floor) as floor from kept as k group by k.xid, k.name
  ),
  by_transaction as (
    select l.xid, jsonb_object_agg(l.name, l.floor) as floors from lowest as l group by l.xid
  )
  select jsonb_object_agg(b.xid, b.floors) into v_late from by_transaction as b;
  return jsonb_strip_nulls(jsonb_build_object('for', p_for, 'lanes', v_lanes, 'late', v_late));
end;
$$;
comment on function trunkline_internal.next_position(jsonb, text, text[], bigint[], pg_snapshot, timestamptz) is 'Advances a claim''s position over the jobs that this claim covered, without losing a late commit.';
