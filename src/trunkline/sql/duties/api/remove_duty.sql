-- Removes a duty that add_duty has added; its function stays. Built-in duties are refused.
-- Locks the duty's row, and waits while the duty runs.
create or replace function trunkline.remove_duty(p_duty text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('duty', p_duty));
  perform trunkline_internal.require_duty(p_duty => p_duty);
  perform trunkline_internal.refuse_builtin_duty(p_duty => p_duty);
  v_before := trunkline_internal.operated_state(p_kind => 'duty', p_object => p_duty);
  delete from trunkline_internal.duties as d where d.duty = p_duty;
  perform trunkline_internal.log_change(
    p_action => 'remove_duty', p_kind => 'duty', p_object => p_duty, p_before => v_before
  );
end;
$$;
comment on function trunkline.remove_duty(text) is 'Removes a duty that add_duty has added; its function stays. Built-in duties are refused.';
