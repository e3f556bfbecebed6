-- Marks artifacts whose files are gone and clears the mark of those that are back; returns how many are newly missing.
-- Without a cursor the sweep has ended, and the next one begins an hour later.
create or replace function trunkline.report_checked(p_worker text, p_cursor uuid, p_missing uuid[], p_found uuid[])
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lost uuid[];
  v_now timestamptz := trunkline.clock();
begin
  perform from trunkline_internal.store_sweep as s where s.worker = p_worker and s.leased_until >= v_now for update of s;
  if not found or trunkline.tenant_scope() is not null then
    return 0;
  end if;
  with lost as (
    update trunkline_internal.artifacts as a
    set missing_at = v_now
    where a.artifact_id = any(p_missing) and a.missing_at is null and a.deleted_at is null
    returning a.*
  ),
  noted as (
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor, detail)
    select
      v_now, l.job_id, l.attempt, 'artifact_missing', null, l.task, '', l.tenant, p_worker, session_user,
      jsonb_build_object('artifact', l.artifact_id, 'name', l.name, 'path', l.path)
    from lost as l
  )
  select array_agg(l.artifact_id) into v_lost from lost as l;
  update trunkline_internal.artifacts as a
  set missing_at = null
  where a.artifact_id = any(p_found) and a.missing_at is not null;
  update trunkline_internal.store_sweep as s
  set
    artifact_cursor = p_cursor,
    leased_until = case when p_cursor is null then null else v_now + interval '5 minutes' end,
    ended_at = case when p_cursor is null then v_now else s.ended_at end,
    next_at = case when p_cursor is null then v_now + interval '1 hour' else s.next_at end
  where s.worker = p_worker;
  return coalesce(cardinality(v_lost), 0);
end;
$$;
comment on function trunkline.report_checked(text, uuid, uuid[], uuid[]) is 'Marks artifacts whose files are gone and clears the mark of those that are back; returns how many are newly missing.';
