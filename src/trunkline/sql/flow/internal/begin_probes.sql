-- Notes which jobs a claim starts as probes of breakers that are open and due: each is half-open until its probe has ended.
-- The caller holds the gates.
create or replace function trunkline_internal.begin_probes(p_gates bigint[], p_jobs uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update trunkline_internal.breakers as b
  set state = 'half_open', probe_job = p.job_id, changed_at = p_now, changed_by = session_user
  from unnest(p_gates, p_jobs) as p (gate, job_id)
  where b.gate = p.gate and b.state <> 'closed' and b.probe_at <= p_now;
end;
$$;
comment on function trunkline_internal.begin_probes(bigint[], uuid[], timestamptz) is 'Notes which jobs a claim starts as probes of breakers that are open and due: each is half-open until its probe has ended.';
