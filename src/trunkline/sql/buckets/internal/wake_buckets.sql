-- Wakes workers that sleep on these queues, or on others in which jobs may wait for one of these buckets.
-- p_slots means that only slots were freed: workers whose jobs wait only for a window stay asleep. p_elsewhere means that
-- jobs of share groups may wait for these buckets, and those wait in the lanes of their own keys.
create or replace function trunkline_internal.wake_buckets(
  p_buckets bigint[],
  p_queues text[],
  p_slots boolean,
  p_elsewhere boolean
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_queues text[];
begin
  if not exists (select from trunkline_internal.sleepers as s) then
    return;
  end if;
  v_queues := array(
    select distinct g.queue
    from trunkline_internal.bucket_queues as g
    where g.bucket = any(p_buckets)
      and g.queue <> all(p_queues)
      and (not p_slots or exists (
        select
        from trunkline_internal.limits as l
        where l.limit_id = g.limit_id and num_nonnulls(l.concurrency, l.share_group, l.breaker_failures) > 0
      ))
  );
  if p_elsewhere and exists (select from trunkline_internal.limits as l where l.share_group is not null) then
    v_queues := v_queues || array(
      select distinct g.queue
      from trunkline_internal.bucket_queues as g
      join trunkline_internal.limits as l on l.limit_id = g.limit_id and l.share_group is not null
    );
  end if;
  perform trunkline_internal.wake_sleepers(p_queues => p_queues || v_queues);
end;
$$;
comment on function trunkline_internal.wake_buckets(bigint[], text[], boolean, boolean) is 'Wakes workers that sleep on these queues, or on others in which jobs may wait for one of these buckets.';
