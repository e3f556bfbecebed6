-- Records a difference for what the quota of a bucket counts, and for nothing else: rates and slots belong to another bucket.
create or replace function trunkline_internal.adjust_quota(
  p_bucket bigint,
  p_limit integer,
  p_at bigint,
  p_before trunkline_internal.amounts,
  p_after trunkline_internal.amounts
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unit text;
begin
  select l.quota_unit
  into v_unit
  from trunkline_internal.limits as l
  where l.limit_id = p_limit and l.quota is not null;
  if found then
    perform trunkline_internal.adjust_bucket(
      p_bucket => p_bucket, p_at => p_at,
      p_requests => case when v_unit = 'requests' then p_after.requests - p_before.requests else 0 end,
      p_tokens => case when v_unit = 'tokens' then p_after.tokens - p_before.tokens else 0 end,
      p_units => case when v_unit in ('requests', 'tokens') then 0 else p_after.units - p_before.units end
    );
  end if;
end;
$$;
comment on function trunkline_internal.adjust_quota(bigint, integer, bigint, trunkline_internal.amounts, trunkline_internal.amounts) is 'Records a difference for what the quota of a bucket counts, and for nothing else: rates and slots belong to another bucket.';
