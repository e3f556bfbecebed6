-- Opens a breaker by hand for p_for (null: as long as its limit says), until a probe succeeds; returns when the probe is due.
-- p_name is a limit without keys, or a filled-in name. Running jobs continue; a running probe no longer closes it.
-- Locks the bucket, its turn at counting failures, then the row of its breaker. Claims and recovery skip it meanwhile.
create or replace function trunkline.trip_breaker(p_name text, p_reason text default null, p_for interval default null)
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_bad text;
  v_bucket bigint;
  v_limit integer;
  v_must text;
  v_now timestamptz := trunkline.clock();
  v_probe_at timestamptz;
begin
  perform trunkline_internal.require_read_committed();
  case
    when strpos(p_name, '{') > 0 then
      v_bad := 'p_name'; v_must := 'a name with its keys filled in; set_limit with a status pauses all of them';
    when p_for < interval '1 second' or p_for > interval '30 days' then
      v_bad := 'p_for'; v_must := '1 second to 30 days';
    when length(p_reason) > 1000 then
      v_bad := 'p_reason'; v_must := 'at most 1000 characters';
    else
      v_bad := null;
  end case;
  if v_bad is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', v_bad, 'must_be', v_must)
    );
  end if;
  select g.bucket, g.limit_id into v_bucket, v_limit from trunkline_internal.breaker_buckets(p_name => p_name) as g;
  perform trunkline_internal.lock_bucket(p_bucket => v_bucket);
  perform trunkline_internal.lock_breakers(p_buckets => array[v_bucket], p_wait => true);
  select jsonb_build_object('state', b.state, 'probe_at', b.probe_at, 'reason', b.reason)
  into v_before
  from trunkline_internal.breakers as b
  where b.bucket = v_bucket;
  insert into trunkline_internal.breakers as b (
    bucket, limit_id, state, opened_at, probe_at, changed_at, changed_by, reason
  )
  select
    v_bucket, v_limit, 'open', v_now, v_now + coalesce(p_for, m.breaker_probe_after), v_now, session_user,
    coalesce(nullif(p_reason, ''), 'opened by hand')
  from trunkline_internal.limits as m
  where m.limit_id = v_limit
  on conflict (bucket) do update
  set
    limit_id = excluded.limit_id,
    state = 'open',
    opened_at = case when b.state = 'closed' then excluded.opened_at else b.opened_at end,
    probe_at = excluded.probe_at,
    probe_job = null,
    changed_at = excluded.changed_at,
    changed_by = excluded.changed_by,
    reason = excluded.reason
  returning probe_at into v_probe_at;
  perform trunkline_internal.log_action(
    p_action => 'trip_breaker', p_kind => 'breaker', p_object => p_name, p_before => v_before,
    p_after => jsonb_build_object('state', 'open', 'probe_at', v_probe_at), p_reason => p_reason,
    p_tenant => trunkline.tenant_scope()
  );
  return v_probe_at;
end;
$$;
comment on function trunkline.trip_breaker(text, text, interval) is 'Opens a breaker by hand for p_for (null: as long as its limit says), until a probe succeeds; returns when the probe is due.';
