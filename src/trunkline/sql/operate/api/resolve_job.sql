-- Returns the ids of jobs in any state that begin with a prefix, newest first, at most p_limit: one if the prefix is unique.
-- The prefix has 8 to 32 hexadecimal digits, in any case; dashes are ignored. Ids begin with the time of the enqueue, so 8
-- digits stand for about a minute, and 11 for sixteen milliseconds.
-- Reads at most p_limit jobs of each table. A session that acts for one tenant reads at most 20,000, because those of other
-- tenants are skipped; if more begin with the prefix, and too few of them are its own, it needs a longer prefix.
-- Intended plan: a range of the index on the id in each table; finished from the day of the oldest id on. Guarded by
-- tests/plans.
create or replace function trunkline.resolve_job(p_prefix text, p_limit integer default 10)
returns setof uuid
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_digits text;
  v_full boolean;
  v_high uuid;
  v_jobs uuid[];
  v_look integer;
  v_low uuid;
  v_scope text := trunkline.tenant_scope();
  v_since timestamptz;
begin
  perform trunkline_internal.check_bulk_limit(p_limit => p_limit, p_most => 1000);
  if p_prefix ~ '^[0-9A-Fa-f-]{8,36}$' then
    v_digits := replace(p_prefix, '-', '');
  end if;
  if v_digits is null or length(v_digits) not between 8 and 32 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_prefix', 'must_be', 'the first 8 or more hexadecimal digits of a job id', 'prefix', left(p_prefix, 100)
      )
    );
  end if;
  v_low := rpad(v_digits, 32, '0')::uuid;
  v_high := rpad(v_digits, 32, 'f')::uuid;
  v_look := case when v_scope is null then p_limit else 20000 end;
  v_since := trunkline_internal.id_time(p_id => v_low) - interval '1 minute';
  with jobs as materialized (
    (
      select 'waiting' as place, w.job_id, w.tenant
      from trunkline_internal.waiting as w
      where w.job_id >= v_low and w.job_id <= v_high
      order by w.job_id desc
      limit v_look
    )
    union all
    (
      select 'running', r.job_id, r.tenant
      from trunkline_internal.running as r
      where r.job_id >= v_low and r.job_id <= v_high
      order by r.job_id desc
      limit v_look
    )
    union all
    (
      select 'dead', d.job_id, d.tenant
      from trunkline_internal.dead as d
      where d.job_id >= v_low and d.job_id <= v_high
      order by d.job_id desc
      limit v_look
    )
    union all
    (
      select 'finished', f.job_id, f.tenant
      from trunkline_internal.finished as f
      where f.job_id >= v_low and f.job_id <= v_high and f.finished_at >= v_since
      order by f.job_id desc
      limit v_look
    )
  )
  select
    array(select j.job_id from jobs as j where v_scope is null or j.tenant = v_scope order by j.job_id desc limit p_limit),
    exists (select from jobs as j group by j.place having count(*) >= v_look)
  into v_jobs, v_full;
  if v_scope is not null and v_full and cardinality(v_jobs) < p_limit then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_prefix', 'must_be', 'longer', 'prefix', p_prefix)
    );
  end if;
  return query select j.job_id from unnest(v_jobs) with ordinality as j (job_id, place) order by j.place;
end;
$$;
comment on function trunkline.resolve_job(text, integer) is 'Returns the ids of jobs in any state that begin with a prefix, newest first, at most p_limit: one if the prefix is unique.';
