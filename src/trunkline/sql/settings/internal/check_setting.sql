-- Refuses a value that does not fit its setting: wrong type, out of range, or in conflict with another setting.
create or replace function trunkline_internal.check_setting(p_name text, p_value text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_setting trunkline_internal.settings%rowtype;
  v_fits boolean;
begin
  select s.* into strict v_setting from trunkline_internal.settings as s where s.name = p_name;
  begin
    case v_setting.kind
      when 'boolean' then
        v_fits := p_value::boolean is not null;
      when 'integer' then
        v_fits := p_value::integer >= coalesce(v_setting.minimum::integer, p_value::integer)
          and p_value::integer <= coalesce(v_setting.maximum::integer, p_value::integer);
      when 'interval' then
        v_fits := p_value::interval >= coalesce(v_setting.minimum::interval, p_value::interval)
          and p_value::interval <= coalesce(v_setting.maximum::interval, p_value::interval);
      else
        v_fits := p_value <> '' and length(p_value) <= 200;
    end case;
  exception
    when data_exception then
      v_fits := false;
  end;
  -- A lease that ends before the third missed heartbeat would take jobs away from live workers.
  if v_fits and p_name = 'heartbeat_interval' then
    v_fits := 3 * p_value::interval <= trunkline_internal.setting(p_name => 'lease')::interval;
  elsif v_fits and p_name = 'lease' then
    v_fits := p_value::interval >= 3 * trunkline_internal.setting(p_name => 'heartbeat_interval')::interval;
  end if;
  if not coalesce(v_fits, false) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_setting',
      p_detail => jsonb_build_object(
        'setting', p_name, 'value', p_value, 'kind', v_setting.kind,
        'minimum', v_setting.minimum, 'maximum', v_setting.maximum,
        'rule', case when p_name in ('lease', 'heartbeat_interval') then 'lease >= 3 x heartbeat_interval' end
      )
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_setting(text, text) is 'Refuses a value that does not fit its setting: wrong type, out of range, or in conflict with another setting.';
