-- Changes a setting for all sessions at once and returns its new value; null restores the default.
create or replace function trunkline.set_setting(p_name text, p_value text)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_default text;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('setting', p_name));
  v_before := trunkline_internal.operated_state(p_kind => 'setting', p_object => p_name);
  select s.default_value into v_default from trunkline_internal.settings as s where s.name = p_name for update;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'unknown_setting',
      p_detail => jsonb_build_object(
        'setting', p_name,
        'known', (select jsonb_agg(s.name order by s.name) from trunkline_internal.settings as s)
      )
    );
  end if;
  perform trunkline_internal.check_setting(p_name => p_name, p_value => coalesce(p_value, v_default));
  update trunkline_internal.settings as s
  set
    value = p_value,
    updated_at = case when p_value is not null then trunkline.clock() end,
    updated_by = case when p_value is not null then session_user end
  where s.name = p_name;
  perform trunkline_internal.log_change(
    p_action => 'set_setting', p_kind => 'setting', p_object => p_name, p_before => v_before
  );
  if p_name = 'claims_enabled' and coalesce(p_value, v_default)::boolean then
    -- Maintenance is over: waiting jobs can be claimed again.
    perform trunkline_internal.wake_sleepers(p_queues => array(select distinct l.queue from trunkline_internal.lanes as l));
  end if;
  return coalesce(p_value, v_default);
end;
$$;
comment on function trunkline.set_setting(text, text) is 'Changes a setting for all sessions at once and returns its new value; null restores the default.';
