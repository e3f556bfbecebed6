-- Notes that a gate was charged too much or too little in a second; counts from the commit on, and waits for nobody.
-- Whoever waits for what comes free is woken.
create or replace function trunkline_internal.correct_gate(
  p_gate bigint,
  p_at bigint,
  p_requests bigint,
  p_tokens bigint,
  p_units bigint
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_requests = 0 and p_tokens = 0 and p_units = 0 then
    return;
  end if;
  insert into trunkline_internal.gate_corrections (gate, at, requests, tokens, units)
  values (p_gate, p_at, p_requests, p_tokens, p_units);
  if least(p_requests, p_tokens, p_units) < 0 then
    perform trunkline_internal.wake_gate(p_gate => p_gate);
  end if;
end;
$$;
comment on function trunkline_internal.correct_gate(bigint, bigint, bigint, bigint, bigint) is 'Notes that a gate was charged too much or too little in a second; counts from the commit on, and waits for nobody.';
