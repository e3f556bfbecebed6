-- Marks a worker as idle on these queues (null: all) so that it is notified; returns when the next job is due or a limit has room again.
-- Until the worker calls wake, every call that makes a job of these queues claimable, or due within a minute, notifies
-- channel trunkline_wake with the queue as payload. The flags of several calls add up. Setting a flag that is already set
-- writes nothing.
-- A worker sets the flag after a claim that found nothing, then claims once more. That claim finds every job committed
-- before the flag, and an enqueue that starts after the flag notifies. One case remains: an enqueue that checked for
-- flags before this one was committed, and that commits after the claim. Polling finds its job.
-- The worker keeps the flag while there is little work. It removes the flag only after it has been busy for a while,
-- because each change leaves a dead row.
-- The returned time is never later than the first due time of these queues. The function reads the next hundred scheduled
-- jobs of all queues, because the index is not per queue. A worker polls at least once a minute, so it also notices in time
-- a job that was enqueued with a due time more than a minute ahead.
-- Locks: this worker's rows of sleepers, in the order of the queues.
create or replace function trunkline.sleep(p_worker text, p_queues text[] default null)
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_looked_at constant integer := 100;
  v_due timestamptz;
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  if array_ndims(p_queues) > 1 or cardinality(p_queues) > 1000
    or exists (select from unnest(p_queues) as q (queue) where q.queue is null or q.queue = '' or length(q.queue) > 200)
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_queues', 'must_be', 'one list of at most 1000 names of 1 to 200 characters')
    );
  end if;
  if not exists (select from trunkline_internal.workers as w where w.worker = p_worker and (v_scope is null or w.tenant = v_scope)) then
    perform trunkline_internal.refuse(p_name => 'unknown_worker', p_detail => jsonb_build_object('worker', p_worker));
  end if;
  insert into trunkline_internal.sleepers (queue, worker)
  select distinct q.queue, p_worker
  from unnest(coalesce(p_queues, array['*'])) as q (queue)
  order by q.queue
  on conflict do nothing;
  -- Reads only jobs that are not due yet. The claim after this call promotes those that are due, and their part of the
  -- index contains the dead entries of all jobs that were promoted under an old snapshot.
  select coalesce(
    min(w.run_at) filter (
      where (p_queues is null or w.queue = any(p_queues)) and (v_scope is null or w.tenant = v_scope)
    ),
    case when count(*) = c_looked_at then max(w.run_at) end
  )
  into v_due
  from (
    select w.run_at, w.queue, w.tenant
    from trunkline_internal.waiting as w
    where w.state = 'scheduled' and w.run_at > v_now
    order by w.run_at
    limit c_looked_at
  ) as w;
  if exists (select from trunkline_internal.bucket_queues) then
    v_due := least(v_due, trunkline_internal.next_opening(p_queues => p_queues, p_now => v_now));
  end if;
  return v_due;
end;
$$;
comment on function trunkline.sleep(text, text[]) is 'Marks a worker as idle on these queues (null: all) so that it is notified; returns when the next job is due or a limit has room again.';
