-- Refuses a number of jobs per call that is not between 1 and p_most.
create or replace function trunkline_internal.check_bulk_limit(p_limit integer, p_most integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit is null or p_limit not between 1 and p_most then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range', p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', p_most)
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_bulk_limit(integer, integer) is 'Refuses a number of jobs per call that is not between 1 and p_most.';
