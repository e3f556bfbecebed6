-- Takes over what a running job's claim has charged of a gate, once: tells whether it was still there to take.
-- The zero in the books says so; whoever took it settles it.
create or replace function trunkline_internal.take_claim_charge(
  p_job trunkline_internal.running,
  p_gate bigint,
  p_limit integer,
  p_now timestamptz
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.spendings (
    at, job_id, attempt, gate, limit_id, task, tenant, requests, tokens, units, cost
  )
  values (p_now, p_job.job_id, p_job.attempt, p_gate, p_limit, p_job.task, p_job.tenant, 0, 0, 0, 0)
  on conflict (job_id, attempt, gate) where grant_id is null do nothing;
  return found;
end;
$$;
comment on function trunkline_internal.take_claim_charge(trunkline_internal.running, bigint, integer, timestamptz) is 'Takes over what a running job''s claim has charged of a gate, once: tells whether it was still there to take.';
