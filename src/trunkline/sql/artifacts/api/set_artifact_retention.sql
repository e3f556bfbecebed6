-- Sets how long new artifacts of a kind are kept; null restores the setting artifact_retention.
create or replace function trunkline.set_artifact_retention(p_kind text, p_retention interval)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_rule jsonb;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('kind', p_kind));
  v_rule := trunkline_internal.artifact_rule(p_name => 'x', p_kind => p_kind, p_content_type => null, p_step => null);
  if p_kind is null or v_rule is not null or p_retention < interval '1 minute' then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => coalesce(v_rule, jsonb_build_object('argument', 'p_retention', 'must_be', 'one minute or more, or null'))
    );
  end if;
  select jsonb_build_object('retention', k.retention) into v_before
  from trunkline_internal.artifact_kinds as k
  where k.kind = p_kind
  for update of k;
  if p_retention is null then
    delete from trunkline_internal.artifact_kinds as k where k.kind = p_kind;
  else
    insert into trunkline_internal.artifact_kinds as k (kind, retention, updated_at, updated_by)
    values (p_kind, p_retention, trunkline.clock(), session_user)
    on conflict (kind) do update
    set retention = excluded.retention, updated_at = excluded.updated_at, updated_by = excluded.updated_by;
  end if;
  if (v_before ->> 'retention')::interval is distinct from p_retention then
    perform trunkline_internal.log_action(
      p_action => 'set_artifact_retention', p_kind => 'artifact_kind', p_object => p_kind, p_before => v_before,
      p_after => jsonb_build_object('retention', p_retention)
    );
  end if;
end;
$$;
comment on function trunkline.set_artifact_retention(text, interval) is 'Sets how long new artifacts of a kind are kept; null restores the setting artifact_retention.';
