-- Returns why a request's cost is refused for a task with these limits, as the name and detail of the refusal; null if it is not.
-- A single expression without a SET clause, so that the statement of a batch inlines it.
create or replace function trunkline_internal.cost_fault(p_task text, p_cost jsonb, p_limits text[])
returns jsonb
language sql
stable
as $$
  select case
    when p_cost is null then null
    when coalesce(pg_catalog.cardinality(p_limits), 0) = 0 then pg_catalog.jsonb_build_object(
      'refusal', 'invalid_cost', 'task', p_task, 'cost', p_cost, 'must_be', 'left out: the task has no limits'
    )
    when not trunkline_internal.is_cost(p_cost => p_cost) then pg_catalog.jsonb_build_object(
      'refusal', 'invalid_cost', 'task', p_task, 'cost', p_cost,
      'must_be', 'whole numbers from 0 to 10^12 as requests, tokens and units'
    )
  end
$$;
comment on function trunkline_internal.cost_fault(text, jsonb, text[]) is 'Returns why a request''s cost is refused for a task with these limits, as the name and detail of the refusal; null if it is not.';
