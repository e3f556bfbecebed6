-- Returns how many workers are wanted for these numbers, given what was wanted before and since when the backlog is low.
-- The number rises at once. It falls only after fewer than scale_down_pending jobs could start for scale_down_after.
-- Without a live worker and without jobs nobody needs the set of tasks any more, so the minimum does not apply to it.
create or replace function trunkline_internal.next_target(
  p_workers integer,
  p_startable bigint,
  p_running bigint,
  p_wanted integer,
  p_low_since timestamptz,
  p_now timestamptz,
  out wanted integer,
  out low_since timestamptz
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_busy boolean := p_startable + p_running > 0;
  v_most integer := trunkline_internal.setting(p_name => 'scale_max_workers')::integer;
  v_least integer := trunkline_internal.setting(p_name => 'scale_min_workers')::integer;
  v_before integer := 0;
begin
  wanted := case
    when p_startable > trunkline_internal.setting(p_name => 'scale_up_pending')::integer then greatest(
      trunkline_internal.setting(p_name => 'scale_up_workers')::integer,
      ceil(p_startable::numeric / trunkline_internal.setting(p_name => 'scale_jobs_per_worker')::integer)::integer
    )
    when v_busy then 1
    else 0
  end;
  wanted := least(greatest(wanted, case when v_busy or p_workers > 0 then v_least else 0 end), v_most);
  -- least ignores nulls.
  if p_wanted is not null then
    v_before := least(p_wanted, v_most);
  end if;
  if wanted >= v_before then
    return;
  end if;
  if p_startable < trunkline_internal.setting(p_name => 'scale_down_pending')::integer then
    low_since := coalesce(p_low_since, p_now);
  end if;
  if low_since is null or p_now - low_since < trunkline_internal.setting(p_name => 'scale_down_after')::interval then
    wanted := v_before;
  else
    low_since := null;
  end if;
end;
$$;
comment on function trunkline_internal.next_target(integer, bigint, bigint, integer, timestamptz, timestamptz) is 'Returns how many workers are wanted for these numbers, given what was wanted before and since when the backlog is low.';
