-- Notes a difference at a bucket for what its quota counts, and for nothing else: rates and slots are not those of this call.
create or replace function trunkline_internal.adjust_quota(
  p_bucket bigint,
  p_limit integer,
  p_at bigint,
  p_before bigint[],
  p_after bigint[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_part integer;
begin
  select trunkline_internal.quota_part(p_unit => l.quota_unit)
  into v_part
  from trunkline_internal.limits as l
  where l.limit_id = p_limit and l.quota is not null;
  if v_part is not null then
    perform trunkline_internal.adjust_bucket(
      p_bucket => p_bucket, p_at => p_at,
      p_requests => case when v_part = 1 then p_after[1] - p_before[1] else 0 end,
      p_tokens => case when v_part = 2 then p_after[2] - p_before[2] else 0 end,
      p_units => case when v_part = 3 then p_after[3] - p_before[3] else 0 end
    );
  end if;
end;
$$;
comment on function trunkline_internal.adjust_quota(bigint, integer, bigint, bigint[], bigint[]) is 'Notes a difference at a bucket for what its quota counts, and for nothing else: rates and slots are not those of this call.';
