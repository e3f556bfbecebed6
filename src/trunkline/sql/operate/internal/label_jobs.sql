-- Lists new jobs under their tags and correlation ids, so that searches find them. Called by enqueue for jobs that have any.
create or replace function trunkline_internal.label_jobs(p_jobs uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into trunkline_internal.job_labels (label, job_id)
  select trunkline_internal.label_of(p_kind => 'correlation_id', p_value => w.correlation_id), w.job_id
  from trunkline_internal.waiting as w
  where w.job_id = any(p_jobs) and w.correlation_id is not null
  union
  select trunkline_internal.label_of(p_kind => 'tag', p_value => t.tag), w.job_id
  from trunkline_internal.waiting as w
  cross join lateral unnest(w.tags) as t (tag)
  where w.job_id = any(p_jobs);
end;
$$;
comment on function trunkline_internal.label_jobs(uuid[]) is 'Lists new jobs under their tags and correlation ids, so that searches find them. Called by enqueue for jobs that have any.';
