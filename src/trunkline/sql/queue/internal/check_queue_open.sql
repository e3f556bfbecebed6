-- Refuses new jobs for a queue that is closed to them or would exceed its depth limit.
create or replace function trunkline_internal.check_queue_open(p_queue text, p_jobs integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue trunkline_internal.queues%rowtype;
  v_depth bigint;
begin
  select q.* into v_queue from trunkline_internal.queues as q where q.queue = p_queue;
  if not found then
    return;
  end if;
  if v_queue.refuse_enqueue then
    perform trunkline_internal.refuse(
      p_name => 'queue_paused',
      p_detail => jsonb_build_object('queue', p_queue, 'reason', v_queue.reason, 'since', v_queue.paused_at)
    );
  end if;
  if v_queue.max_depth is not null then
    -- Ready jobs and jobs set aside are counted by index, up to the limit, and only for queues that have one.
    select count(*)
    into v_depth
    from (
      (
        select
        from trunkline_internal.waiting as w
        where w.queue = p_queue and w.state = 'ready' and w.bucket is null
        limit v_queue.max_depth
      )
      union all
      (
        select
        from (select distinct g.bucket from trunkline_internal.bucket_queues as g where g.queue = p_queue) as g
        join trunkline_internal.waiting as w
          on w.bucket = g.bucket and w.queue = p_queue and w.state = 'ready' and w.bucket is not null
        limit v_queue.max_depth
      )
      union all
      (select from trunkline_internal.set_aside as a where a.queue = p_queue limit v_queue.max_depth)
      limit v_queue.max_depth
    ) as deep;
    if v_depth + p_jobs > v_queue.max_depth then
      perform trunkline_internal.refuse(
        p_name => 'queue_full',
        p_detail => jsonb_build_object(
          'queue', p_queue, 'waiting', v_depth, 'asked', p_jobs, 'max_depth', v_queue.max_depth
        )
      );
    end if;
  end if;
end;
$$;
comment on function trunkline_internal.check_queue_open(text, integer) is 'Refuses new jobs for a queue that is closed to them or would exceed its depth limit.';
