-- Creates the limits that a task declares in code, by name and parts; returns how many are new or changed.
-- A declaration that is the same as before changes nothing, so an operator's later setting stays. Of a changed declaration
-- only the parts that differ are set. Code never changes a limit that an operator created.
create or replace function trunkline_internal.declare_limits(p_task text, p_declares jsonb)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed integer := 0;
  v_limit record;
  v_must text;
  v_old trunkline_internal.limits;
  v_other text;
  v_parts jsonb;
begin
  if p_declares is null then
    return 0;
  end if;
  if jsonb_typeof(p_declares) <> 'object' then
    perform trunkline_internal.refuse(
      p_name => 'invalid_policy',
      p_detail => jsonb_build_object('task', p_task, 'argument', 'declares', 'must_be', 'an object of limits and their parts')
    );
  end if;
  -- A session that acts for one tenant must not learn the names of others.
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('task', p_task, 'limit', d.name))
  from jsonb_object_keys(p_declares) as d (name)
  where not exists (select from trunkline_internal.limits as l where l.name = d.name);
  for v_limit in select d.key as name, d.value as parts from jsonb_each(p_declares) as d order by d.key collate "C" loop
    v_other := trunkline_internal.overlapping_limit(p_name => v_limit.name, p_task => p_task);
    v_must := case
      when not trunkline_internal.is_limit_name(p_name => v_limit.name)
        then 'names of 1 to 200 bytes, and between two keys something that begins with no letter, digit or %'
      when v_other is not null
        then format('a name that cannot be filled in to the same as another limit: %s overlaps', v_other)
      else trunkline_internal.check_limit_parts(p_parts => v_limit.parts)
    end;
    if v_must is not null then
      perform trunkline_internal.refuse(
        p_name => 'invalid_policy',
        p_detail => jsonb_build_object('task', p_task, 'argument', 'declares', 'limit', v_limit.name, 'must_be', v_must)
      );
    end if;
    select l.* into v_old from trunkline_internal.limits as l where l.name = v_limit.name;
    continue when v_old.limit_id is not null and (v_old.declared is null or v_old.declared = v_limit.parts);
    perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('task', p_task, 'limit', v_limit.name));
    select coalesce(jsonb_object_agg(p.key, p.value), '{}'::jsonb)
    into v_parts
    from (
      select p.key, p.value
      from jsonb_each(v_limit.parts) as p
      where v_old.declared is null or v_old.declared -> p.key is distinct from p.value
      union all
      -- A part that is no longer declared is no longer limited.
      select k.key, 'null'::jsonb
      from jsonb_object_keys(v_old.declared) as k (key)
      where not v_limit.parts ? k.key and k.key not in ('quota_refuses', 'depth_refuses')
    ) as p;
    perform trunkline_internal.store_limit(
      p_limit => v_limit.name, p_parts => v_parts, p_status => null, p_reason => null, p_declared => v_limit.parts
    );
    v_changed := v_changed + 1;
  end loop;
  return v_changed;
end;
$$;
comment on function trunkline_internal.declare_limits(text, jsonb) is 'Creates the limits that a task declares in code, by name and parts; returns how many are new or changed.';
