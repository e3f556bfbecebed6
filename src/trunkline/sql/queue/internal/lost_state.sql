-- Returns gone if the job of a lost attempt does not exist or belongs to another tenant than the caller's; null otherwise.
-- A claimed job disappears if the server loses its last transactions, as in an asynchronous failover, or if an operator
-- discards it. Otherwise another attempt owns it, or it has ended.
create or replace function trunkline_internal.lost_state(p_job uuid, p_scope text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if trunkline_internal.visible_live_state(p_job => p_job, p_scope => p_scope) is null
    and trunkline_internal.visible_end(p_job => p_job, p_scope => p_scope) is null
  then
    return 'gone';
  end if;
  return null;
end;
$$;
comment on function trunkline_internal.lost_state(uuid, text) is 'Returns gone if the job of a lost attempt does not exist or belongs to another tenant than the caller''s; null otherwise.';
