-- Says that a worker is idle on these queues (null: all) and wants to be notified; tells when the next scheduled job is due, or a limit has room again.
-- Until wake is called, whatever makes a job of these queues claimable, or due within a minute,
-- notifies channel trunkline_wake with the queue as payload. Flags of several calls add up; setting
-- one that is set writes nothing.
-- The worker sets it when a claim found nothing and claims once more after it: what was committed
-- before is found by that claim, what begins later is notified. Between the two lies an enqueue
-- that looked before the flag was committed and commits after the claim: polling finds it. The
-- worker keeps the flag while little work comes and takes it back only once it has been busy for a
-- while, since each change leaves a dead row behind.
-- The answer is no later than the first due time of these queues: they are looked for among the next
-- hundred scheduled jobs of all queues, which is what the index has. A worker polls at least once a
-- minute, so a job put off for longer than the minute above is seen in time.
-- Locks: rows of sleepers, this worker's own, in the order of the queues.
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
  -- Only what is still to come: what is due, the claim after this call promotes. Before it lie the
  -- dead index entries of all jobs that were promoted under an old snapshot.
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
comment on function trunkline.sleep(text, text[]) is 'Says that a worker is idle on these queues (null: all) and wants to be notified; tells when the next scheduled job is due, or a limit has room again.';
