-- Raises a refusal by its name, with its own SQLSTATE, constant message, JSON detail and hint.
create or replace function trunkline_internal.refuse(p_name text, p_detail jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refusal record;
begin
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
    detail = jsonb_build_object('code', p_name) || coalesce(p_detail, '{}'::jsonb),
    hint = v_refusal.hint;
end;
$$;
comment on function trunkline_internal.refuse(text, jsonb) is 'Raises a refusal by its name, with its own SQLSTATE, constant message, JSON detail and hint.';
