-- Refuses a number of rows that one run of a duty cannot be limited to.
create or replace function trunkline_internal.check_duty_limit(p_limit integer, p_maximum integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit is null or p_limit not between 1 and p_maximum then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', p_maximum)
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_duty_limit(integer, integer) is 'Refuses a number of rows that one run of a duty cannot be limited to.';
