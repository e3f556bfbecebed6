-- Duty: closes empty buckets, sets aside jobs that no longer fit their limits, frees jobs that fit again, drops expired charges; returns how many rows it changed.
-- A run sets aside about 5,000 jobs and frees 5,000 at most; of everything else it changes at most p_limit rows.
create or replace function trunkline.sweep_buckets(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_back interval;
  v_done integer := 0;
  v_buckets bigint[];
  v_limits integer[];
begin
  perform trunkline_internal.require_read_committed();
  if p_limit is null or p_limit not between 1 and 100000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 100000)
    );
  end if;
  if not trunkline_internal.duty_begin(p_duty => 'sweep_buckets') then
    return 0;
  end if;
  begin
    select g.buckets, g.limits
    into v_buckets, v_limits
    from trunkline_internal.buckets_to_check(p_limit => null, p_most => null) as g;
    -- First, because the other steps rely on the clock.
    select greatest(d.ended_at - trunkline.clock(), interval '0')
    into v_back
    from trunkline_internal.duties as d
    where d.duty = 'sweep_buckets';
    v_done := trunkline_internal.adopt_buckets()
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
    perform trunkline_internal.duty_end(p_duty => 'sweep_buckets', p_rows => v_done);
  exception
    when others then
      v_done := 0;
      perform trunkline_internal.duty_failed(p_duty => 'sweep_buckets', p_sqlstate => sqlstate, p_message => sqlerrm);
  end;
  return v_done;
end;
$$;
comment on function trunkline.sweep_buckets(integer) is 'Duty: closes empty buckets, sets aside jobs that no longer fit their limits, frees jobs that fit again, drops expired charges; returns how many rows it changed.';
