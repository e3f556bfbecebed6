-- Takes back that a worker wants to be notified, on all its queues; tells whether it wanted to.
-- Called by a worker that has been busy for a while: from then on enqueue notifies nobody for it.
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
comment on function trunkline.wake(text) is 'Takes back that a worker wants to be notified, on all its queues; tells whether it wanted to.';
