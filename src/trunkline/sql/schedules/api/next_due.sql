-- Returns the next due times of a cron expression, to try it before it becomes a schedule.
-- Reads no table. Refuses the same expressions and time zones as set_schedule.
create or replace function trunkline.next_due(
  p_cron text,
  p_time_zone text default 'UTC',
  p_after timestamptz default null,
  p_count integer default 5
)
returns setof timestamptz
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_due timestamptz := coalesce(p_after, trunkline.clock());
begin
  if p_count is null or p_count not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_count, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  if v_due not between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00' then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_after', 'value', p_after, 'must_be', 'a time between 1970 and 9000')
    );
  end if;
  for v_number in 1 .. p_count loop
    v_due := trunkline_internal.cron_next(p_cron => p_cron, p_time_zone => p_time_zone, p_after => v_due);
    return next v_due;
  end loop;
end;
$$;
comment on function trunkline.next_due(text, text, timestamptz, integer) is 'Returns the next due times of a cron expression, to try it before it becomes a schedule.';
