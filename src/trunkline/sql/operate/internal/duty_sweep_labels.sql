-- Removes labels of jobs that no longer exist, among the next p_limit labels; returns how many. The next run continues there.
-- Reads the table in turns, in the order of its key. Only jobs older than the retention of finished jobs can be gone, so
-- younger ones are not looked up. Discarded dead letters lose their labels at the same age.
create or replace function trunkline_internal.duty_sweep_labels(p_limit integer default 50000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_gone uuid[];
  v_labels bigint[];
  v_jobs uuid[];
  v_old uuid;
  v_place jsonb;
  v_removed integer;
begin
  v_old := trunkline_internal.first_id(
    p_at => trunkline.clock() - trunkline_internal.setting(p_name => 'finished_retention')::interval
  );
  select d.state into v_place from trunkline_internal.duties as d where d.duty = 'sweep_labels';
  select array_agg(l.label), array_agg(l.job_id)
  into v_labels, v_jobs
  from (
    select l.label, l.job_id
    from trunkline_internal.job_labels as l
    where (l.label, l.job_id) > (
      coalesce((v_place ->> 'label')::bigint, -9223372036854775808),
      coalesce((v_place ->> 'job')::uuid, '00000000-0000-0000-0000-000000000000')
    )
    order by l.label, l.job_id
    limit p_limit
  ) as l;
  v_gone := array(
    select distinct c.job_id
    from unnest(v_jobs) as c (job_id)
    where c.job_id < v_old
      and not exists (select from trunkline_internal.waiting as w where w.job_id = c.job_id)
      and not exists (select from trunkline_internal.running as r where r.job_id = c.job_id)
      and not exists (select from trunkline_internal.dead as d where d.job_id = c.job_id)
      and not exists (select from trunkline_internal.finished as f where f.job_id = c.job_id)
  );
  delete from trunkline_internal.job_labels as l
  using unnest(v_labels, v_jobs) as c (label, job_id)
  where l.label = c.label and l.job_id = c.job_id and c.job_id = any(v_gone);
  get diagnostics v_removed = row_count;
  update trunkline_internal.duties as d
  set
    state = case
      when cardinality(v_jobs) = p_limit then jsonb_build_object('label', v_labels[p_limit]::text, 'job', v_jobs[p_limit])
      else '{}'::jsonb
    end
  where d.duty = 'sweep_labels';
  return v_removed;
end;
$$;
comment on function trunkline_internal.duty_sweep_labels(integer) is 'Removes labels of jobs that no longer exist, among the next p_limit labels; returns how many. The next run continues there.';
