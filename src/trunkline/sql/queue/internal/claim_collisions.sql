-- Sends jobs of a batch whose id is running already to dead and returns the batch without them.
-- Such an id can only come from outside. The claim checks for it before the insert instead of catching the error: an
-- exception block would be a subtransaction in every claim, and could not take back rows that were already returned.
create or replace function trunkline_internal.claim_collisions(p_batch trunkline_internal.claim_batch)
returns trunkline_internal.claim_batch
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_batch trunkline_internal.claim_batch := p_batch;
begin
  perform trunkline_internal.bury_collisions(p_tids => p_batch.tids, p_now => p_batch.claimed_at);
  select array_agg(w.job_id), array_agg(w.job_id) filter (where w.unique_key is not null)
  into v_batch.jobs, v_batch.keyed
  from trunkline_internal.waiting as w
  where w.ctid = any(p_batch.tids);
  -- The job that was to carry the position may be gone: an extra row carries it.
  v_batch.bearer := null;
  return v_batch;
end;
$$;
comment on function trunkline_internal.claim_collisions(trunkline_internal.claim_batch) is 'Sends jobs of a batch whose id is running already to dead and returns the batch without them.';
