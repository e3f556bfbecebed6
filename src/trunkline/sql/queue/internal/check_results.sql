-- Refuses a batch in which a result is too large to be stored; the detail names the job.
create or replace function trunkline_internal.check_results(p_jobs uuid[], p_results jsonb[], p_max_bytes integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bad record;
begin
  select a.job_id, pg_column_size(a.result) as bytes
  into v_bad
  from unnest(p_jobs, p_results) as a (job_id, result)
  where pg_column_size(a.result) > p_max_bytes
  limit 1;
  if found then
    perform trunkline_internal.refuse(
      p_name => 'payload_too_large',
      p_detail => jsonb_build_object('job', v_bad.job_id, 'bytes', v_bad.bytes, 'max_payload_bytes', p_max_bytes)
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_results(uuid[], jsonb[], integer) is 'Refuses a batch in which a result is too large to be stored; the detail names the job.';
