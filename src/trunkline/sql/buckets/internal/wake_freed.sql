-- Wakes workers that sleep on queues of ended jobs, or on others in which jobs may wait for the slots that were freed.
-- p_ended has the costs of the limited ones among p_jobs; null if no worker slept when they ended. A grant that a job left
-- open ends with it, too. Costs next to nothing while no worker sleeps elsewhere.
create or replace function trunkline_internal.wake_freed(
  p_jobs uuid[],
  p_queues text[],
  p_ended trunkline_internal.costly_attempt[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_buckets bigint[];
  v_granted bigint[];
  v_limits integer[];
  v_queues text[];
  v_several boolean;
begin
  if not exists (select from trunkline_internal.sleepers as s) then
    return;
  end if;
  v_queues := array(select distinct q.queue from unnest(p_queues) as q (queue));
  -- A worker that sleeps on all queues is woken for any of them.
  if not exists (
    select from trunkline_internal.sleepers as s where s.queue <> all(v_queues) and (s.queue <> '*' or v_queues = '{}')
  ) then
    perform trunkline_internal.wake_sleepers(p_queues => v_queues);
    return;
  end if;
  select array_agg(e.bucket_ids[1]), array_agg(e.limit_ids[1]), bool_or(cardinality(e.bucket_ids) > 1)
  into v_buckets, v_limits, v_several
  from unnest(p_ended) as e;
  -- Separate: for a thousand jobs with one limit each this would be most of the work.
  if v_several then
    select v_buckets || array_agg(i.bucket), v_limits || array_agg(i.limit_id)
    into v_buckets, v_limits
    from unnest(p_ended) as e
    cross join lateral unnest(e.limit_ids[2:], e.bucket_ids[2:]) as i (limit_id, bucket);
  end if;
  if exists (select from trunkline_internal.grants) then
    v_granted := array(
      select distinct o.bucket from trunkline_internal.grants as o where o.job_id = any(p_jobs) and o.settled_at is null
    );
  end if;
  perform trunkline_internal.wake_buckets(
    p_buckets => v_buckets || v_granted,
    p_queues => v_queues,
    p_slots => true,
    p_elsewhere => cardinality(v_granted) > 0
      or exists (select from trunkline_internal.limits as l where l.limit_id = any(v_limits) and l.share_group is null)
  );
end;
$$;
comment on function trunkline_internal.wake_freed(uuid[], text[], trunkline_internal.costly_attempt[]) is 'Wakes workers that sleep on queues of ended jobs, or on others in which jobs may wait for the slots that were freed.';
