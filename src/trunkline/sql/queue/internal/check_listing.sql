-- Checks the arguments of a call that lists jobs; returns the states to list.
create or replace function trunkline_internal.check_listing(p_states text[], p_limit integer, p_most integer)
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_states constant text[] := array['ready', 'scheduled', 'blocked', 'running', 'completed', 'cancelled', 'dead'];
  v_states text[] := coalesce(p_states, c_states);
begin
  if p_limit is null or p_limit not between 1 and p_most then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', p_most)
    );
  end if;
  if cardinality(v_states) > 100 or not v_states <@ c_states then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_states', 'must_be', c_states)
    );
  end if;
  return v_states;
end;
$$;
comment on function trunkline_internal.check_listing(text[], integer, integer) is 'Checks the arguments of a call that lists jobs; returns the states to list.';
