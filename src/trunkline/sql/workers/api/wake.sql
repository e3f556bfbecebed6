-- Removes a worker's requests to be notified, on all its queues; returns whether there were any.
-- A worker calls it after it has been busy for a while. From then on enqueue sends no notification for it.
create or replace function trunkline.wake(p_worker text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  delete from trunkline_internal.sleepers as s
  where s.worker = p_worker
    and (v_scope is null or exists (
      select from trunkline_internal.workers as w where w.worker = p_worker and w.tenant = v_scope
    ));
  return found;
end;
$$;
comment on function trunkline.wake(text) is 'Removes a worker''s requests to be notified, on all its queues; returns whether there were any.';
