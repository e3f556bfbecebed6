-- Closes buckets without waiting jobs, sets aside jobs that no longer fit their limits, frees those that fit again, and drops charges that no window counts any more; returns how many rows it changed. The work of trunkline.sweep_buckets.
-- A run sets aside about 5,000 jobs and frees 5,000 at most. Of everything else it changes at most p_limit rows.
create or replace function trunkline_internal.duty_sweep_buckets(p_limit integer default 1000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_assigned integer;
  v_back interval;
  v_buckets bigint[];
  v_limits integer[];
begin
  v_assigned := trunkline_internal.assign_named_buckets();
  select g.buckets, g.limits
  into v_buckets, v_limits
  from trunkline_internal.buckets_to_check(p_limit => null, p_most => null) as g;
  -- How far the clock was set back since the last run. Repaired first, because the steps after it go by the clock.
  select greatest(d.ended_at - trunkline.clock(), interval '0')
  into v_back
  from trunkline_internal.duties as d
  where d.duty = 'sweep_buckets';
  return v_assigned
    + trunkline_internal.adopt_buckets()
    + trunkline_internal.repair_buckets(
      p_limit => p_limit, p_back => coalesce(v_back, interval '0'), p_now => trunkline.clock()
    )
    + trunkline_internal.set_heads_aside(p_buckets => v_buckets, p_limits => v_limits, p_depth => 1, p_now => trunkline.clock())
    + trunkline_internal.free_set_aside(p_most => 5000, p_now => trunkline.clock())
    + trunkline_internal.bury_set_aside(p_limit => p_limit, p_now => trunkline.clock())
    + trunkline_internal.close_empty_buckets()
    + trunkline_internal.sweep_breakers(p_limit => p_limit, p_now => trunkline.clock())
    + trunkline_internal.drop_old_charges(p_limit => p_limit, p_now => trunkline.clock())
    + trunkline_internal.roll_usage(p_limit => p_limit, p_now => trunkline.clock());
end;
$$;
comment on function trunkline_internal.duty_sweep_buckets(integer) is 'Closes buckets without waiting jobs, sets aside jobs that no longer fit their limits, frees those that fit again, and drops charges that no window counts any more; returns how many rows it changed. The work of trunkline.sweep_buckets.';
