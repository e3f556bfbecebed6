-- Adds a lane of a queue to the list that claims walk, if it is not there.
create or replace function trunkline_internal.ensure_lane(p_queue text, p_lane integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select from trunkline_internal.lanes as l where l.queue = p_queue and l.lane = p_lane
  ) then
    insert into trunkline_internal.lanes (queue, lane) values (p_queue, p_lane);
  end if;
end;
$$;
comment on function trunkline_internal.ensure_lane(text, integer) is 'Adds a lane of a queue to the list that claims walk, if it is not there.';
