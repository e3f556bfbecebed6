-- Lists waiting jobs that were deferred or set aside, longest first; health counts those over their bounds.
-- Read-only. A session that acts for one tenant receives that tenant's jobs among the first p_limit of all tenants.
create or replace function trunkline.deferred_jobs(p_limit integer default 100)
returns setof trunkline.listed_job
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 10000)
    );
  end if;
  return query
  select
    -- <job shape: listed_job of w in waiting>
    w.job_id, w.state, w.task, w.queue, (w.lane >> 1)::integer, w.tenant, w.attempt, w.failures::integer,
    w.max_attempts::integer, w.deferrals, w.created_at, w.run_at, null::timestamptz, null::timestamptz, null::timestamptz,
    null::timestamptz, null::timestamptz, null::text, null::integer, null::text, null::text, w.reason, w.unique_key,
    w.correlation_id, w.retry_of, w.tags, w.last_error, null::timestamptz, w.expires_at, null::text, w.workflow_id
    -- </job>
  from (
    select d.job_id, min(d.since) as since
    from (
      (
        select w.job_id, w.deferred_since as since
        from trunkline_internal.waiting as w
        where w.deferred_since is not null
        order by w.deferred_since
        limit p_limit
      )
      union all
      (select a.job_id, a.since from trunkline_internal.set_aside as a order by a.since limit p_limit)
    ) as d
    group by d.job_id
    order by min(d.since)
    limit p_limit
  ) as d
  join trunkline_internal.waiting as w on w.job_id = d.job_id
  where v_scope is null or w.tenant = v_scope
  order by d.since;
end;
$$;
comment on function trunkline.deferred_jobs(integer) is 'Lists waiting jobs that were deferred or set aside, longest first; health counts those over their bounds.';
