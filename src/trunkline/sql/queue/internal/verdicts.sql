-- Returns the verdicts of a batch call about running attempts, in the order of the request: ok if moved, otherwise lost.
-- The state of a lost attempt is gone if its job does not exist. If a job is given twice, the higher attempt was moved; see
-- lock_running.
create or replace function trunkline_internal.verdicts(
  p_jobs uuid[],
  p_attempts integer[],
  p_moves trunkline_internal.move[]
)
returns setof trunkline.verdict
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  return query
  select
    a.job_id,
    a.attempt,
    case when m.job_id is null then 'lost' else 'ok' end,
    case when m.job_id is null then trunkline_internal.lost_state(p_job => a.job_id, p_scope => v_scope) else m.to_state end,
    m.run_at
  from (
    select a.job_id, a.attempt, a.place, a.attempt = max(a.attempt) over (partition by a.job_id) as newest
    from unnest(p_jobs, p_attempts) with ordinality as a (job_id, attempt, place)
  ) as a
  left join unnest(p_moves) as m on m.job_id = a.job_id and a.newest
  order by a.place;
end;
$$;
comment on function trunkline_internal.verdicts(uuid[], integer[], trunkline_internal.move[]) is 'Returns the verdicts of a batch call about running attempts, in the order of the request: ok if moved, otherwise lost.';
