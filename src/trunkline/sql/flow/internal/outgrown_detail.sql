-- Describes a cost that is more than a bucket ever gives at once: the limit, the unit, the cost and the most it gives.
create or replace function trunkline_internal.outgrown_detail(p_gate bigint, p_unit integer, p_cost bigint, p_most bigint)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return jsonb_build_object(
    'reason', 'cost_over_limit',
    'limit', coalesce(
      (select n.name from trunkline_internal.gate_names as n where n.gate = p_gate order by n.limit_id desc limit 1),
      (select l.name from trunkline_internal.limits as l where l.gate = p_gate)
    ),
    'unit', (array['requests', 'tokens', 'units'])[p_unit], 'cost', p_cost, 'most', p_most
  );
end;
$$;
comment on function trunkline_internal.outgrown_detail(bigint, integer, bigint, bigint) is 'Describes a cost that is more than a bucket ever gives at once: the limit, the unit, the cost and the most it gives.';
