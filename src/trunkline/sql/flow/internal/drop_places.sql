-- Makes claims scan the lanes of buckets from the start again, after jobs have returned to places that may have been passed.
-- The caller holds the buckets.
create or replace function trunkline_internal.drop_places(p_gates bigint[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gate bigint;
  v_state trunkline_internal.gate_states;
begin
  foreach v_gate in array p_gates loop
    select s.* into v_state from trunkline_internal.gate_states as s where s.gate = v_gate order by s.epoch desc limit 1;
    if v_state.place is not null then
      v_state.place := null;
      perform trunkline_internal.next_epoch(p_gate => v_gate, p_state => v_state);
    end if;
  end loop;
end;
$$;
comment on function trunkline_internal.drop_places(bigint[]) is 'Makes claims scan the lanes of buckets from the start again, after jobs have returned to places that may have been passed.';
