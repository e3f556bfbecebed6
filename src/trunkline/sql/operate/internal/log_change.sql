-- Appends a line to the operator log if the state of an object differs from p_before, which the caller read before the change.
create or replace function trunkline_internal.log_change(
  p_action text,
  p_kind text,
  p_object text,
  p_before jsonb,
  p_reason text default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after jsonb := trunkline_internal.operated_state(p_kind => p_kind, p_object => p_object);
begin
  if v_after is distinct from p_before then
    perform trunkline_internal.log_action(
      p_action => p_action, p_kind => p_kind, p_object => p_object, p_before => p_before, p_after => v_after,
      p_reason => p_reason, p_tenant => coalesce(v_after, p_before) ->> 'tenant'
    );
  end if;
end;
$$;
comment on function trunkline_internal.log_change(text, text, text, jsonb, text) is 'Appends a line to the operator log if the state of an object differs from p_before, which the caller read before the change.';
