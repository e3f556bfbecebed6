-- Checks that an upload of so many bytes fits into the quota of its tenant; returns the bytes, or null without a quota.
create or replace function trunkline_internal.reserve_bytes(p_tenant text, p_artifact uuid, p_bytes bigint)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_max bigint := trunkline_internal.storage_quota(p_tenant => p_tenant);
  v_reserved bigint;
  v_used bigint;
begin
  if v_max is null then
    return null;
  end if;
  -- Uploads of one tenant take turns here, so that no two of them get the same last bytes.
  perform pg_advisory_xact_lock(20260, hashtext(coalesce(p_tenant, '')));
  -- One statement: between two, a completion could turn a reservation into usage, and neither would count it.
  select
    (select coalesce(sum(u.bytes), 0)::bigint from trunkline_internal.storage_usage as u where u.tenant = coalesce(p_tenant, '')),
    (
      select coalesce(sum(greatest(s.reserved_bytes, s.bytes)), 0)::bigint
      from trunkline_internal.staged_artifacts as s
      where s.tenant is not distinct from p_tenant
        and s.artifact_id <> p_artifact
        -- A reservation dies with its attempt.
        and (s.kept or exists (
          select from trunkline_internal.running as r where r.job_id = s.job_id and r.attempt = s.attempt
        ))
    )
  into v_used, v_reserved;
  if v_used + v_reserved + p_bytes > v_max or v_used + v_reserved >= v_max then
    perform trunkline_internal.refuse(
      p_name => 'storage_quota_exceeded',
      p_detail => jsonb_build_object(
        'tenant', p_tenant, 'used_bytes', v_used, 'reserved_bytes', v_reserved, 'asked_bytes', p_bytes, 'max_bytes', v_max,
        'used_mb', round(v_used / 1048576.0, 2), 'max_mb', round(v_max / 1048576.0, 2)
      )
    );
  end if;
  return p_bytes;
end;
$$;
comment on function trunkline_internal.reserve_bytes(text, uuid, bigint) is 'Checks that an upload of so many bytes fits into the quota of its tenant; returns the bytes, or null without a quota.';
