-- Notifies channel trunkline_wake once for each of these queues on which a worker sleeps; costs almost nothing while none does.
-- The notification is sent when the transaction commits, and not at all if it rolls back. It is sent only if a worker
-- sleeps, because commits that notify wait for each other across the whole server. The payload is only the name of the
-- queue, because every login of the database can listen.
-- Reads sleepers without a lock. Called by every function that makes jobs claimable.
create or replace function trunkline_internal.wake_sleepers(p_queues text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from trunkline_internal.sleepers as s) then
    return;
  end if;
  perform pg_notify('trunkline_wake', q.queue)
  from (select distinct q.queue from unnest(p_queues) as q (queue)) as q
  where exists (select from trunkline_internal.sleepers as s where s.queue in (q.queue, '*'));
end;
$$;
comment on function trunkline_internal.wake_sleepers(text[]) is 'Notifies channel trunkline_wake once for each of these queues on which a worker sleeps; costs almost nothing while none does.';
