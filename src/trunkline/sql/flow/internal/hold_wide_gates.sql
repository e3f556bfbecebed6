-- Takes the gates of jobs that a claim found without holding them, and tells whether there is room for all that they are charged.
-- Whoever has one has it until its end, so this waits, a little: to give up at once would leave a worker idle, and to
-- wait for as long as it takes would have all of them stand still behind one long transaction.
create or replace function trunkline_internal.hold_wide_gates(p_charges trunkline_internal.gate_charge[], p_now timestamptz)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_looks constant integer := 40;
  c_pause constant double precision := '0.001'::double precision;
  v_charge trunkline_internal.gate_charge;
  v_fits boolean;
  v_looks integer := 0;
begin
  foreach v_charge in array p_charges loop
    while not trunkline_internal.try_gate(p_gate => v_charge.gate) loop
      v_looks := v_looks + 1;
      if v_looks > c_looks then
        return false;
      end if;
      perform pg_sleep(c_pause);
    end loop;
  end loop;
  -- A statement of its own: what was read before the gates were held may be old.
  select count(*) = cardinality(p_charges)
  into v_fits
  from unnest(p_charges) as c
  join trunkline_internal.gate_room(
    p_gates => array(select c.gate from unnest(p_charges) as c),
    p_limits => array(select c.limit_id from unnest(p_charges) as c),
    p_now => p_now,
    p_wanted => (select max(cardinality(c.holders)) from unnest(p_charges) as c)
  ) as r on r.gate = c.gate
  where (r.allowed).status = 'active'
    and r.held_until is null
    and coalesce(r.slots >= cardinality(c.holders), true)
    and coalesce(r.requests >= greatest(c.requests, 1), true)
    and coalesce(r.tokens >= greatest(c.tokens, 1), true)
    and coalesce(
      r.units >= (array[c.requests, c.tokens, c.units])[trunkline_internal.quota_part(p_unit => (r.allowed).quota_unit)],
      true
    );
  return v_fits;
end;
$$;
comment on function trunkline_internal.hold_wide_gates(trunkline_internal.gate_charge[], timestamptz) is 'Takes the gates of jobs that a claim found without holding them, and tells whether there is room for all that they are charged.';
