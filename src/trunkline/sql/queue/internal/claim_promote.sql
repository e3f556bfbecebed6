-- Makes due jobs ready before a scan, and returns the lanes with the due time up to which none is left.
-- A claim that keeps a position starts from the due time that its last claim reached.
-- Runs with the planner settings of claim.
create or replace function trunkline_internal.claim_promote(
  p_lanes trunkline_internal.lane_list,
  p_position trunkline_internal.kept_position,
  p_limit integer,
  p_now timestamptz
)
returns trunkline_internal.lane_list
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lanes trunkline_internal.lane_list := p_lanes;
  v_from timestamptz := '-infinity'::timestamptz;
begin
  if p_position.kept then
    v_from := to_timestamp(
      trunkline_internal.position_floor(p_position => p_position.value, p_name => '/due', p_snapshot => p_position.snapshot) / 1e6
    );
  end if;
  v_lanes.due_until := p_now;
  if exists (
    select
    from trunkline_internal.waiting as w
    where w.state = 'scheduled' and w.run_at >= v_from and w.run_at <= p_now
  ) then
    select p.covered
    into v_lanes.due_until
    from trunkline_internal.promote_due(p_now => p_now, p_from => v_from, p_limit => greatest(p_limit, 100)) as p;
    v_lanes.limited := v_lanes.limited or exists (select from trunkline_internal.bucket_queues);
  end if;
  return v_lanes;
end;
$$;
comment on function trunkline_internal.claim_promote(trunkline_internal.lane_list, trunkline_internal.kept_position, integer, timestamptz) is 'Makes due jobs ready before a scan, and returns the lanes with the due time up to which none is left.';
