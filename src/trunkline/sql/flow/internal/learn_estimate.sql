-- Lets the estimate of a task at a gate follow what a call really took: the first sets it, one of ten later ones moves it by a tenth.
-- Not all of them, so that busy tasks do not fight over one row; one that somebody holds is left alone.
create or replace function trunkline_internal.learn_estimate(p_task text, p_gate bigint, p_tokens bigint, p_units bigint, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A call that took nothing was refused: it says nothing about the next one.
  if p_task is null or (p_tokens = 0 and p_units = 0) then
    return;
  end if;
  if not exists (select from trunkline_internal.estimates as e where e.task = p_task and e.gate = p_gate) then
    insert into trunkline_internal.estimates (task, gate, tokens, units, updated_at)
    values (p_task, p_gate, p_tokens, p_units, p_now)
    on conflict (task, gate) do nothing;
  elsif random() < 0.1 then
    update trunkline_internal.estimates as e
    set
      tokens = round(0.9 * e.tokens + 0.1 * p_tokens)::bigint,
      units = round(0.9 * e.units + 0.1 * p_units)::bigint,
      updated_at = p_now
    where e.ctid = (
      select k.ctid from trunkline_internal.estimates as k where k.task = p_task and k.gate = p_gate for update skip locked
    );
  end if;
end;
$$;
comment on function trunkline_internal.learn_estimate(text, bigint, bigint, bigint, timestamptz) is 'Lets the estimate of a task at a gate follow what a call really took: the first sets it, one of ten later ones moves it by a tenth.';
