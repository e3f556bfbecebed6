-- Returns the final state of a job if it has ended and the caller's tenant may see it, otherwise null.
create or replace function trunkline_internal.visible_end(p_job uuid, p_scope text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_state text;
begin
  if exists (
    select from trunkline_internal.dead as d where d.job_id = p_job and (p_scope is null or d.tenant = p_scope)
  ) then
    return 'dead';
  end if;
  select f.state into v_state
  from trunkline_internal.finished as f
  where f.job_id = p_job
    and f.finished_at >= trunkline_internal.id_time(p_id => p_job) - interval '1 minute'
    and (p_scope is null or f.tenant = p_scope);
  return v_state;
end;
$$;
comment on function trunkline_internal.visible_end(uuid, text) is 'Returns the final state of a job if it has ended and the caller''s tenant may see it, otherwise null.';
