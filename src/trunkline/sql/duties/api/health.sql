-- Checks what an operator must know: duties that are late, fail or are disabled, stale work, deferrals over their bounds, jobs set aside for too long, workflows that are stuck, open breakers, default partitions in use.
create or replace function trunkline.health()
returns setof trunkline.health_check
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select 'duty ' || d.duty,
    d.enabled and not d.late and d.failures_in_a_row < 3,
    jsonb_build_object(
      'enabled', d.enabled, 'late', d.late, 'every', d.every, 'succeeded_at', d.succeeded_at,
      'failures_in_a_row', d.failures_in_a_row, 'last_error', d.last_error
    )
  from trunkline.duties as d
  union all
  select 'stale work', count(*) = 0, jsonb_build_object('jobs', count(*))
  from trunkline.stale_validation as v
  union all
  select 'claims', trunkline_internal.setting(p_name => 'claims_enabled')::boolean,
    jsonb_build_object('claims_enabled', trunkline_internal.setting(p_name => 'claims_enabled')::boolean)
  union all
  -- The jobs deferred for longest are read first, so all jobs over the age are among them, and nearly all over the number.
  -- counted_up_to is there if there may be more, as in a session that acts for one tenant and reads others' jobs as well.
  select 'deferred work', count(*) filter (where w.over) = 0, jsonb_strip_nulls(jsonb_build_object(
    'jobs', count(*) filter (where w.over),
    'counted_up_to', case when count(*) >= 10000 then count(*) filter (where w.over) end
  ))
  from (
    select
      (
        w.deferrals > (select trunkline_internal.setting(p_name => 'max_deferrals')::integer)
        or w.deferred_since < (select trunkline.clock() - trunkline_internal.setting(p_name => 'max_deferral_age')::interval)
      )
      and ((select trunkline.tenant_scope()) is null or w.tenant = (select trunkline.tenant_scope())) as over
    from trunkline_internal.waiting as w
    where w.deferred_since is not null
    order by w.deferred_since
    limit 10000
  ) as w
  union all
  -- The jobs set aside for longest are read first, so the overdue ones are among them.
  select 'set aside', count(*) filter (where a.overdue) = 0, jsonb_build_object(
    'jobs', count(*) filter (where a.own), 'overdue', count(*) filter (where a.overdue),
    'counted_up_to', case when count(*) >= 10000 then count(*) filter (where a.own) else 10000 end
  )
  from (
    select o.own, o.own and a.since < (
      select trunkline.clock() - trunkline_internal.setting(p_name => 'max_deferral_age')::interval
    ) as overdue
    from (select a.job_id, a.since from trunkline_internal.set_aside as a order by a.since limit 10000) as a
    cross join lateral (
      -- A scalar subquery: exists would be planned as a scan of all waiting jobs.
      select (select trunkline.tenant_scope()) is null
        or (select w.tenant from trunkline_internal.waiting as w where w.job_id = a.job_id) = (select trunkline.tenant_scope())
        as own
      -- Computed once for each row, although two columns use it.
      offset 0
    ) as o
  ) as a
  union all
  -- Workflows of which nothing is live and that have not ended. The duty ends them, so one that is older than a minute is stuck.
  select 'workflows', count(*) filter (where w.stuck) = 0, jsonb_build_object(
    'stuck', coalesce(jsonb_agg(w.workflow_id order by w.workflow_id) filter (where w.stuck), '[]'::jsonb),
    'counted_up_to', 1000
  )
  from (
    select
      w.workflow_id,
      not exists (select from trunkline_internal.running as r where r.workflow_id = w.workflow_id)
      and not exists (select from trunkline_internal.waiting as j where j.workflow_id = w.workflow_id)
      and not exists (
        select
        from trunkline_internal.workflow_steps as s
        where s.workflow_id = w.workflow_id and s.kind = 'map' and s.state = 'open' and (s.items is null or s.expanded < s.items)
      )
      and (select trunkline.clock()) - coalesce(
        (select max(e.finished_at) from trunkline_internal.workflow_ends as e where e.workflow_id = w.workflow_id), w.created_at
      ) > interval '1 minute'
      and ((select trunkline.tenant_scope()) is null or w.tenant = (select trunkline.tenant_scope())) as stuck
    from trunkline_internal.workflows as w
    where w.ended_at is null
    order by w.workflow_id
    limit 1000
  ) as w
  union all
  select 'breakers', count(*) = 0, jsonb_build_object('open', coalesce(jsonb_agg(n.name order by n.name), '[]'::jsonb))
  from trunkline_internal.breakers as b
  join trunkline_internal.limits as l on l.limit_id = b.limit_id and l.breaker_failures is not null
  cross join lateral (
    select coalesce((
      select n.name from trunkline_internal.bucket_names as n where n.bucket = b.bucket order by n.limit_id desc limit 1
    ), l.name) as name
  ) as n
  where b.state <> 'closed' and (select trunkline.tenant_scope()) is null
  union all
  -- Files that were published and are gone, and files that the sweeper cannot delete.
  select 'artifacts', m.missing = 0 and m.stuck = 0, jsonb_build_object('missing', m.missing, 'not_removed', m.stuck)
  from (
    select
      (
        select count(*) from (
          select from trunkline_internal.artifacts as a
          where a.missing_at is not null and a.deleted_at is null
            and ((select trunkline.tenant_scope()) is null or a.tenant = (select trunkline.tenant_scope()))
          limit 1000
        ) as a
      ) as missing,
      (
        select count(*) from (
          select from trunkline_internal.file_removals as r
          where r.due_at < (select trunkline.clock()) + interval '2 days' and r.tries >= 5
            and (select trunkline.tenant_scope()) is null
          limit 1000
        ) as r
      ) as stuck
  ) as m
  union all
  select 'default partitions', not bool_or(p.used), jsonb_object_agg(p.parent, p.used)
  from (
    select 'finished' as parent, exists (select from trunkline_internal.finished_default) as used
    union all
    select 'bodies', exists (select from trunkline_internal.bodies_default)
    union all
    select 'recorded_steps', exists (select from trunkline_internal.recorded_steps_default)
    union all
    select 'events', exists (select from trunkline_internal.events_default)
  ) as p
$$;
comment on function trunkline.health() is 'Checks what an operator must know: duties that are late, fail or are disabled, stale work, deferrals over their bounds, jobs set aside for too long, workflows that are stuck, open breakers, default partitions in use.';
