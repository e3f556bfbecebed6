-- Finds the limit that counts for a name with its keys filled in; refuses a key that is missing and a limit nobody made.
create or replace function trunkline_internal.find_limit(
  p_template text,
  p_keys jsonb,
  p_tenant text,
  p_task text,
  out name text,
  out gate bigint,
  out limit_id integer
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit integer;
begin
  name := trunkline_internal.fill_limit_name(p_template => p_template, p_payload => p_keys, p_tenant => p_tenant);
  if name is null or octet_length(name) > 400 then
    perform trunkline_internal.refuse(
      p_name => 'limit_key_missing', p_detail => jsonb_build_object('task', p_task, 'limit', p_template)
    );
  end if;
  select l.limit_id into v_limit
  from trunkline_internal.limits as l
  where l.name in (find_limit.name, p_template)
  order by l.name <> find_limit.name
  limit 1;
  limit_id := v_limit;
  if v_limit is null then
    perform trunkline_internal.refuse(
      p_name => 'unknown_limit',
      p_detail => jsonb_build_object(
        'task', p_task, 'limit', name,
        'known', coalesce((
          select jsonb_agg(k.name) from (select l.name from trunkline_internal.limits as l order by l.name limit 200) as k
        ), '[]'::jsonb)
      )
    );
  end if;
  gate := trunkline_internal.gate_of(p_name => name);
  if not exists (
    select from trunkline_internal.gate_names as n where n.gate = find_limit.gate and n.limit_id = v_limit
  ) then
    insert into trunkline_internal.gate_names (gate, limit_id, name, seen_at)
    values (gate, limit_id, name, trunkline.clock());
  end if;
end;
$$;
comment on function trunkline_internal.find_limit(text, jsonb, text, text) is 'Finds the limit that counts for a name with its keys filled in; refuses a key that is missing and a limit nobody made.';
