-- Removes states of gates that hold nobody and have charged nothing within an hour, at most p_limit of them; tells how many.
create or replace function trunkline_internal.forget_old_charges(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gates bigint[];
  v_removed integer;
begin
  v_gates := array(
    select s.gate
    from trunkline_internal.gate_states as s
    where not exists (select from trunkline_internal.gate_queues as g where g.gate = s.gate)
    limit p_limit
  );
  v_gates := array(select g.gate from unnest(v_gates) as g (gate) where trunkline_internal.try_gate(p_gate => g.gate));
  delete from trunkline_internal.gate_states as s
  where s.gate = any(v_gates)
    and coalesce(s.charged_at[cardinality(s.charged_at)], 0) < extract(epoch from p_now) - 3602
    and not exists (
      select
      from unnest(s.holders) as h (holder)
      join trunkline_internal.running as r on r.job_id = h.holder
    );
  get diagnostics v_removed = row_count;
  delete from trunkline_internal.gate_names as n
  where n.seen_at < p_now - interval '1 day'
    and n.gate = any(v_gates)
    and not exists (select from trunkline_internal.gate_states as s where s.gate = n.gate);
  return v_removed;
end;
$$;
comment on function trunkline_internal.forget_old_charges(integer, timestamptz) is 'Removes states of gates that hold nobody and have charged nothing within an hour, at most p_limit of them; tells how many.';
