-- Appends a line to the operator log, in the transaction of the change. Does nothing if the caller is no operator.
-- A producer that cancels or reprioritises its own job is no operator: the job's events have that. The reason is the
-- argument, or the session's setting trunkline.reason.
create or replace function trunkline_internal.log_action(
  p_action text,
  p_kind text,
  p_object text,
  p_before jsonb,
  p_after jsonb,
  p_reason text default null,
  p_tenant text default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not trunkline_internal.is_operator() then
    return;
  end if;
  insert into trunkline_internal.operator_log (at, login, actor, action, kind, object, tenant, reason, before, after)
  values (
    trunkline.clock(), session_user, left(coalesce(nullif(current_setting('trunkline.actor', true), ''), session_user), 200),
    p_action, p_kind, p_object, p_tenant,
    left(coalesce(nullif(p_reason, ''), nullif(current_setting('trunkline.reason', true), '')), 1000), p_before, p_after
  );
end;
$$;
comment on function trunkline_internal.log_action(text, text, text, jsonb, jsonb, text, text) is 'Appends a line to the operator log, in the transaction of the change. Does nothing if the caller is no operator.';
