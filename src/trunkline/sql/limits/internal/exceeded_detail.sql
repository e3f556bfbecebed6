-- Describes a cost that is more than a bucket can ever allow: the limit, the unit, the cost and the most it gives.
-- template is the limit to raise where it has keys: one made for the bucket's own name would not have its other parts.
-- quota is true where the quota is too small rather than a window.
create or replace function trunkline_internal.exceeded_detail(p_bucket bigint, p_unit text, p_cost bigint, p_most bigint)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id integer;
  v_limit trunkline_internal.limits;
  v_name text;
begin
  select n.name, n.limit_id
  into v_name, v_id
  from trunkline_internal.bucket_names as n
  where n.bucket = p_bucket
  order by n.limit_id desc
  limit 1;
  select l.*
  into v_limit
  from trunkline_internal.limits as l
  where l.limit_id = trunkline_internal.limit_of(p_bucket => p_bucket, p_limit => v_id);
  return jsonb_strip_nulls(jsonb_build_object(
    'reason', 'cost_over_limit',
    'limit', coalesce(v_name, v_limit.name),
    'template', case when v_limit.name <> v_name then v_limit.name end,
    'unit', p_unit, 'cost', p_cost, 'most', p_most,
    'quota', case
      when p_unit = case when v_limit.quota_unit in ('requests', 'tokens') then v_limit.quota_unit else 'units' end
        and floor(v_limit.quota * v_limit.quota_buffer) = p_most then true
    end
  ));
end;
$$;
comment on function trunkline_internal.exceeded_detail(bigint, text, bigint, bigint) is 'Describes a cost that is more than a bucket can ever allow: the limit, the unit, the cost and the most it gives.';
