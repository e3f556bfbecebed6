-- Groups the dead letters that match a filter by their error, without quoted texts, UUIDs and numbers; the largest group first.
-- The filter is that of search_jobs. Reads at most 10,000 dead letters of a group, the newest, 1,000 groups and 50,000 dead
-- letters in all, so that the time does not depend on how many there are. With more, the number is a lower bound, and the
-- times are those of the dead letters that were read. Read-only, in one snapshot.
create or replace function trunkline.dead_letter_groups(p_filter jsonb default '{}', p_limit integer default 100)
returns setof trunkline.dead_letter_group
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  c_groups constant integer := 1000;
  c_most constant integer := 10000;
  c_rows constant integer := 50000;
  v_filter trunkline_internal.job_filter := trunkline_internal.read_filter(p_filter => p_filter);
  v_found trunkline.dead_letter_group[] := array[]::trunkline.dead_letter_group[];
  v_group trunkline.dead_letter_group;
  v_has_fields boolean;
  v_name text := '';
  v_read integer;
  v_scope text := trunkline.tenant_scope();
  v_total integer := 0;
begin
  perform trunkline_internal.check_bulk_limit(p_limit => p_limit, p_most => c_groups);
  if 'dead' <> all(v_filter.states) then
    return;
  end if;
  v_has_fields := v_scope is not null or exists (
    select from jsonb_object_keys(jsonb_strip_nulls(coalesce(p_filter, '{}'))) as k (name) where k.name not in ('state', 'error_group')
  );
  for v_round in 1..c_groups loop
    select d.error_group
    into v_name
    from trunkline_internal.dead as d
    where d.error_group > v_name and (v_filter.error_group is null or d.error_group = v_filter.error_group)
    order by d.error_group
    limit 1;
    exit when not found;
    v_group := null;
    -- Past the bound of all rows, one dead letter of each group is enough to show the group.
    select
      v_name, (count(*) filter (where r.fits))::integer, min(r.died_at) filter (where r.fits), max(r.died_at) filter (where r.fits),
      (array_agg(r.job_id) filter (where r.fits))[1], count(*)::integer
    into v_group.error_group, v_group.jobs, v_group.first_died_at, v_group.last_died_at, v_group.sample_job, v_read
    from (
      select
        d.job_id, d.died_at,
        not v_has_fields or (v_scope is null or d.tenant = v_scope)
        and (v_filter.task is null or d.task = v_filter.task)
        and (v_filter.queue is null or d.queue = v_filter.queue)
        and (v_filter.tenant is null or d.tenant = v_filter.tenant)
        and (v_filter.unique_key is null or d.unique_key = v_filter.unique_key)
        and (v_filter.correlation_id is null or d.correlation_id = v_filter.correlation_id)
        and (v_filter.tag is null or v_filter.tag = any(d.tags))
        and (
          v_filter.error is null
          or strpos(lower(trunkline_internal.error_text(p_error => d.last_error)), v_filter.error) > 0
        )
        and (v_filter.acknowledged is null or (d.acknowledged_at is not null) = v_filter.acknowledged)
        and (v_filter.created_from is null or d.created_at >= v_filter.created_from)
        and (v_filter.created_before is null or d.created_at < v_filter.created_before)
        and (v_filter.finished_from is null or d.died_at >= v_filter.finished_from)
        and (v_filter.finished_before is null or d.died_at < v_filter.finished_before)
        and (v_filter.job_ids is null or d.job_id = any(v_filter.job_ids)) as fits
      from trunkline_internal.dead as d
      -- Not an equality: the planner would then take the order of the primary key, and read all dead letters for it.
      where d.error_group >= v_name and d.error_group <= v_name
      order by d.error_group desc, d.job_id desc
      limit greatest(least(c_most, c_rows - v_total), 1)
    ) as r;
    v_total := v_total + v_read;
    continue when coalesce(v_group.jobs, 0) = 0;
    v_group.more := v_read >= least(c_most, c_rows - v_total + v_read);
    v_found := v_found || v_group;
  end loop;
  for v_group in
    select g.* from unnest(v_found) as g order by g.jobs desc, g.last_died_at desc, g.error_group limit p_limit
  loop
    select d.last_error, trunkline_internal.error_pattern(p_error => d.last_error, p_reason => d.reason)
    into v_group.sample_error, v_group.pattern
    from trunkline_internal.dead as d
    where d.job_id = v_group.sample_job;
    select jsonb_object_agg(t.task, t.jobs)
    into v_group.tasks
    from (
      select d.task, count(*) as jobs
      from (
        select d.task
        from trunkline_internal.dead as d
        where d.error_group >= v_group.error_group
          and d.error_group <= v_group.error_group
          and (v_scope is null or d.tenant = v_scope)
          and (v_filter.task is null or d.task = v_filter.task)
          and (v_filter.queue is null or d.queue = v_filter.queue)
          and (v_filter.tenant is null or d.tenant = v_filter.tenant)
        order by d.error_group desc, d.job_id desc
        limit 1000
      ) as d
      group by d.task
    ) as t;
    return next v_group;
  end loop;
end;
$$;
comment on function trunkline.dead_letter_groups(jsonb, integer) is 'Groups the dead letters that match a filter by their error, without quoted texts, UUIDs and numbers; the largest group first.';
