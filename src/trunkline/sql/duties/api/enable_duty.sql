-- Enables a duty, or disables it: run_duties then skips it, and health reports that.
-- Locks the duty's row, and waits while the duty runs.
create or replace function trunkline.enable_duty(p_duty text, p_enabled boolean)
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
  if p_enabled is null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_enabled', 'value', p_enabled, 'must_be', 'true or false')
    );
  end if;
  perform trunkline_internal.require_duty(p_duty => p_duty);
  v_before := trunkline_internal.operated_state(p_kind => 'duty', p_object => p_duty);
  update trunkline_internal.duties as d set enabled = p_enabled where d.duty = p_duty;
  perform trunkline_internal.log_change(
    p_action => 'enable_duty', p_kind => 'duty', p_object => p_duty, p_before => v_before
  );
end;
$$;
comment on function trunkline.enable_duty(text, boolean) is 'Enables a duty, or disables it: run_duties then skips it, and health reports that.';
