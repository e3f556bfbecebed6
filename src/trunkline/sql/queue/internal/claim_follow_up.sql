-- Does what few started jobs need: frees unique keys that end with the claim, and records audit events.
create or replace function trunkline_internal.claim_follow_up(p_batch trunkline_internal.claim_batch)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_batch.keyed is not null then
    delete from trunkline_internal.unique_keys as k
    where k.job_id = any(array(
      select r.job_id
      from trunkline_internal.running as r
      where r.job_id = any(p_batch.keyed)
        and exists (select from trunkline_internal.tasks as t where t.task = r.task and t.unique_until = 'claim')
    ));
  end if;
  if p_batch.audited then
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor)
    select r.claimed_at, r.job_id, r.attempt, 'claimed', 'running', r.task, r.queue, r.tenant, r.worker, session_user
    from trunkline_internal.running as r
    where r.job_id = any(p_batch.jobs) and r.audit;
  end if;
end;
$$;
comment on function trunkline_internal.claim_follow_up(trunkline_internal.claim_batch) is 'Does what few started jobs need: frees unique keys that end with the claim, and records audit events.';
