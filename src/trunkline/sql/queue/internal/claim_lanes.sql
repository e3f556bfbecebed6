-- Lists the lanes that a claim scans, in their order, each with the sequence numbers between which it scans.
-- Queues come in the order given (p_queues null: all, by name), lanes from the highest to the lowest. A position that was
-- made for other queues, tasks or tenants counts as none. Also reads what the claim needs to know of settings, worker,
-- tasks and limits: one statement, because each takes 30 µs to start.
-- Runs with the planner settings of claim.
create or replace function trunkline_internal.claim_lanes(
  p_worker text,
  p_queues text[],
  p_tasks text[],
  p_scope text,
  p_position jsonb
)
returns trunkline_internal.lane_list
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_no_end constant bigint := 9223372036854775807;
  -- One claim in sixteen serves queues with ageing from their lowest lanes.
  v_aged boolean := trunkline_internal.draw() < 0.0625;
  v_list trunkline_internal.lane_list;
begin
  v_list.behind := coalesce(p_position ? 'behind', false);
  v_list.kept := p_position is not null and not v_list.behind;
  if p_position is not null then
    -- Taken before the scan, so that the scan sees every transaction that the snapshot calls ended.
    v_list.snapshot := pg_current_snapshot();
    v_list.moves := v_list.kept and pg_current_xact_id_if_assigned() is null;
    -- Not md5, which servers in FIPS mode refuse.
    v_list.made_for := hashtextextended(jsonb_build_array(p_queues, p_tasks, p_scope)::text, 0)::text;
    v_list.position := case when v_list.behind then p_position -> 'behind' else p_position end;
    if v_list.position ->> 'for' is distinct from v_list.made_for
      or not trunkline_internal.position_is_sound(p_position => v_list.position)
    then
      v_list.position := '{}';
    end if;
  end if;
  v_list.asked := coalesce(p_queues, array(select distinct l.queue from trunkline_internal.lanes as l order by l.queue));
  -- The subquery orders once: an aggregate with its own ORDER BY costs one sort each.
  select
    array_agg(l.queue),
    array_agg(l.lane),
    array_agg(l.name),
    array_agg(
      case
        when v_list.behind then 0
        when v_list.position ? 'late' then trunkline_internal.position_floor(
          p_position => v_list.position, p_name => l.name, p_snapshot => v_list.snapshot
        )
        else coalesce((v_list.position -> 'lanes' -> l.name ->> 0)::bigint, 0)
      end
    ),
    array_agg(
      case
        when v_list.behind and v_list.position ? 'lanes' then coalesce((v_list.position -> 'lanes' -> l.name ->> 0)::bigint, 0)
        else c_no_end
      end
    ),
    (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'claims_enabled')::boolean
      and not exists (select from trunkline_internal.workers as w where w.worker = p_worker and w.state = 'draining'),
    (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'lease')::interval,
    exists (select from trunkline_internal.tasks as t where t.audit),
    exists (select from trunkline_internal.bucket_queues)
  into
    v_list.queues, v_list.lanes, v_list.names, v_list.floors, v_list.ceilings,
    v_list.enabled, v_list.lease, v_list.audited, v_list.limited
  from (
    select distinct
      array_position(v_list.asked, l.queue) as place,
      case
        when not v_aged or not exists (select from trunkline_internal.queues as q where q.queue = l.queue and q.ageing) then -l.lane
        -- Reversed within each half, so that bulk lanes stay behind the others.
        when l.lane >= 0 then l.lane - 1000
        else l.lane + 1000
      end as rank,
      l.queue, l.lane, l.queue || '/' || l.lane as name
    from trunkline_internal.lanes as l
    where l.queue = any(v_list.asked)
      and not exists (select from trunkline_internal.queues as q where q.queue = l.queue and q.paused)
    order by place, rank
  ) as l;
  return v_list;
end;
$$;
comment on function trunkline_internal.claim_lanes(text, text[], text[], text, jsonb) is 'Lists the lanes that a claim scans, in their order, each with the sequence numbers between which it scans.';
