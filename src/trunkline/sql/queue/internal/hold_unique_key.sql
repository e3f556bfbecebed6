-- Takes a unique key for a job and returns its holder: this job, or the live job that already has the key.
-- Waits for a concurrent request with the same key. The holder is live, because the transaction that ends its job (or
-- claims it, if the task's unique_until is claim) also deletes the key. If the holder ends between insert and select, the
-- function tries again.
-- The scope is (profile, tenant), or (tenant, task) for tasks outside a profile.
create or replace function trunkline_internal.hold_unique_key(
  p_profile text,
  p_tenant text,
  p_task text,
  p_unique_key text,
  p_job uuid
)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holder uuid;
  v_task text := case when p_profile = 'default' then p_task else '' end;
begin
  for v_round in 1..3 loop
    insert into trunkline_internal.unique_keys (profile, tenant, task, unique_key, job_id)
    values (p_profile, coalesce(p_tenant, ''), v_task, p_unique_key, p_job)
    on conflict do nothing;
    if found then
      return p_job;
    end if;
    select k.job_id into v_holder
    from trunkline_internal.unique_keys as k
    where k.profile = p_profile and k.tenant = coalesce(p_tenant, '') and k.task = v_task and k.unique_key = p_unique_key;
    if found then
      return v_holder;
    end if;
  end loop;
  raise exception using errcode = 'serialization_failure', message = 'unique key kept changing';
end;
$$;
comment on function trunkline_internal.hold_unique_key(text, text, text, text, uuid) is 'Takes a unique key for a job and returns its holder: this job, or the live job that already has the key.';
