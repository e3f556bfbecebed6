-- Estimates the units of a call under quotas that count bytes: what such calls of the task used, or 50,000; null if no quota does.
-- Never more than such a quota gives at once.
create or replace function trunkline_internal.default_bytes(p_task text, p_limits integer[], p_buckets bigint[])
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_unknown constant bigint := 50000::bigint;
  v_bytes bigint;
begin
  select min(least(coalesce(nullif(e.units, 0), c_unknown), (trunkline_internal.most_at_once(p_limit => l)).units))
  into v_bytes
  from unnest(p_limits, p_buckets) as i (limit_id, bucket)
  join trunkline_internal.limits as l on l.limit_id = i.limit_id and l.quota_unit = 'bytes' and l.quota is not null
  left join trunkline_internal.estimates as e on e.task = p_task and e.bucket = i.bucket;
  return v_bytes;
end;
$$;
comment on function trunkline_internal.default_bytes(text, integer[], bigint[]) is 'Estimates the units of a call under quotas that count bytes: what such calls of the task used, or 50,000; null if no quota does.';
