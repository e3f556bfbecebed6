-- Raises a refusal by its name, with its own SQLSTATE, constant message, JSON detail and hint.
create or replace function trunkline_internal.refuse(p_name text, p_detail jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_detail jsonb := coalesce(p_detail, '{}'::jsonb);
  v_refusal record;
begin
  -- Truncates large values, because the detail is sent to the caller and written to the log.
  if pg_column_size(v_detail) > 65536 then
    select jsonb_object_agg(
      d.key, case when pg_column_size(d.value) > 1000 then to_jsonb(left(d.value #>> '{}', 200) || '...') else d.value end
    )
    into v_detail
    from jsonb_each(v_detail) as d;
  end if;
  select r.code, r.message, r.hint
  into v_refusal
  from trunkline_internal.refusals() as r
  where r.name = p_name;
  if not found then
    raise exception using
      errcode = 'assert_failure',
      message = format('refusal %s is not in the register', p_name);
  end if;
  raise exception using
    errcode = v_refusal.code,
    message = v_refusal.message,
    detail = jsonb_build_object('code', p_name) || v_detail,
    hint = v_refusal.hint;
end;
$$;
comment on function trunkline_internal.refuse(text, jsonb) is 'Raises a refusal by its name, with its own SQLSTATE, constant message, JSON detail and hint.';
