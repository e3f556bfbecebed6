-- Returns the state of a job if it waits or runs and the caller's tenant may see it, otherwise null.
create or replace function trunkline_internal.visible_live_state(p_job uuid, p_scope text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_state text;
begin
  for v_round in 1..2 loop
    select w.state into v_state
    from trunkline_internal.waiting as w
    where w.job_id = p_job and (p_scope is null or w.tenant = p_scope);
    exit when found;
    select 'running' into v_state
    from trunkline_internal.running as r
    where r.job_id = p_job and (p_scope is null or r.tenant = p_scope);
    exit when found;
  end loop;
  return v_state;
end;
$$;
comment on function trunkline_internal.visible_live_state(uuid, text) is 'Returns the state of a job if it waits or runs and the caller''s tenant may see it, otherwise null.';
