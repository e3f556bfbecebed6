-- Hands back the attempts of a worker that it does not know about, because the result of its claim never arrived.
-- running -> ready, as release does. Otherwise such jobs would wait until their leases expire, because the worker itself is
-- alive. Locks the rows in id order.
create or replace function trunkline.release_forgotten(p_worker text, p_known uuid[])
returns setof trunkline.verdict
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempts integer[];
  v_jobs uuid[];
  v_scope text := trunkline.tenant_scope();
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  if p_known is null or array_ndims(p_known) > 1 or cardinality(p_known) > 100000 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_known', 'must_be', 'one list of at most 100000 jobs, empty where none is known')
    );
  end if;
  select array_agg(r.job_id), array_agg(r.attempt)
  into v_jobs, v_attempts
  from (
    select r.job_id, r.attempt
    from trunkline_internal.running as r
    where r.worker = p_worker and r.job_id <> all(p_known) and (v_scope is null or r.tenant = v_scope)
    order by r.job_id
    limit 10000
  ) as r;
  if v_jobs is null then
    return;
  end if;
  return query
  select v.job_id, v.attempt, v.verdict, v.state, v.run_at
  from trunkline.release(
    p_worker => p_worker, p_jobs => v_jobs, p_attempts => v_attempts, p_reason => 'the answer of the claim was lost',
    p_unstarted => true
  ) as v;
end;
$$;
comment on function trunkline.release_forgotten(text, uuid[]) is 'Hands back the attempts of a worker that it does not know about, because the result of its claim never arrived.';
