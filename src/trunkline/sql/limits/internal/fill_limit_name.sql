-- Fills the keys of a limit's name in from a payload; {tenant} is the tenant. Null where one of them is missing.
-- Values are encoded (see limit_value), so that different values never produce the same name. Inverse: split_limit_name.
create or replace function trunkline_internal.fill_limit_name(p_template text, p_payload jsonb, p_tenant text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
  v_keys text[];
  v_last integer;
  v_name text;
  v_texts text[];
  v_value text;
begin
  if strpos(p_template, '{') = 0 then
    return p_template;
  end if;
  -- Most have one key.
  v_texts := regexp_match(p_template, '^([^{}]*)[{]([^{}]+)[}]([^{}]*)$');
  if v_texts is not null then
    v_key := v_texts[2];
    v_value := case when v_key = 'tenant' then coalesce(p_tenant, p_payload ->> 'tenant') else p_payload ->> v_key end;
    return v_texts[1] || trunkline_internal.limit_value(p_value => nullif(v_value, '')) || v_texts[3];
  end if;
  v_keys := array(select m.found[1] from regexp_matches(p_template, '[{]([^{}]+)[}]', 'g') as m (found));
  v_texts := regexp_split_to_array(p_template, '[{][^{}]+[}]');
  v_name := v_texts[1];
  v_last := cardinality(v_keys);
  for v_place in 1..v_last loop
    v_key := v_keys[v_place];
    v_value := case when v_key = 'tenant' then coalesce(p_tenant, p_payload ->> 'tenant') else p_payload ->> v_key end;
    if v_value is null or v_value = '' then
      return null;
    end if;
    v_name := v_name
      || case
        when v_place = v_last then trunkline_internal.limit_value(p_value => v_value)
        else trunkline_internal.limit_value_before(p_value => v_value, p_next => v_texts[v_place + 1])
      end
      || v_texts[v_place + 1];
  end loop;
  return v_name;
end;
$$;
comment on function trunkline_internal.fill_limit_name(text, jsonb, text) is 'Fills the keys of a limit''s name in from a payload; {tenant} is the tenant. Null where one of them is missing.';
