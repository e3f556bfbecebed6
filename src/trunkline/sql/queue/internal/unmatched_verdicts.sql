-- Returns the verdicts of a batch in which not every attempt was completed: ok, cancel, already or lost.
-- Already: this worker completed the same attempt before. Cancel: the attempt ended as cancelled, because a heartbeat or
-- progress call had returned cancel for it. The state of a lost attempt is gone if its job does not exist.
create or replace function trunkline_internal.unmatched_verdicts(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_done uuid[],
  p_cancelled uuid[],
  p_strict boolean
)
returns setof trunkline.verdict
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answers trunkline.verdict[];
  v_scope text := trunkline.tenant_scope();
  v_stale jsonb;
begin
  select array_agg(
    row(
      a.job_id,
      a.attempt,
      case
        when a.newest and a.job_id = any(p_cancelled) then 'cancel'
        when a.newest and a.job_id = any(p_done) then 'ok'
        when f.state = 'completed' and f.attempt = a.attempt and f.worker = p_worker then 'already'
        else 'lost'
      end,
      case
        when f.state is null and not (a.newest and a.job_id = any(coalesce(p_done, '{}') || coalesce(p_cancelled, '{}')))
          then trunkline_internal.lost_state(p_job => a.job_id, p_scope => v_scope)
        else f.state
      end,
      null
    )::trunkline.verdict
    order by a.place
  )
  into v_answers
  from (
    select a.job_id, a.attempt, a.place, a.attempt = max(a.attempt) over (partition by a.job_id) as newest
    from unnest(p_jobs, p_attempts) with ordinality as a (job_id, attempt, place)
  ) as a
  left join lateral (
    select f.state, f.attempt, f.worker
    from trunkline_internal.finished as f
    where f.job_id = a.job_id
      and f.finished_at >= trunkline_internal.id_time(p_id => a.job_id) - interval '1 minute'
      and (v_scope is null or f.tenant = v_scope)
    limit 1
  ) as f on true;
  if p_strict then
    if p_cancelled is not null then
      perform trunkline_internal.refuse(
        p_name => 'attempt_cancelled', p_detail => jsonb_build_object('worker', p_worker, 'jobs', to_jsonb(p_cancelled))
      );
    end if;
    select jsonb_agg(jsonb_build_object('job', v.job_id, 'attempt', v.attempt))
    into v_stale
    from unnest(v_answers) as v
    where v.verdict = 'lost';
    if v_stale is not null then
      perform trunkline_internal.refuse(
        p_name => 'stale_attempt', p_detail => jsonb_build_object('worker', p_worker, 'attempts', v_stale)
      );
    end if;
  end if;
  return query select v.* from unnest(v_answers) as v;
end;
$$;
comment on function trunkline_internal.unmatched_verdicts(text, uuid[], integer[], uuid[], uuid[], boolean) is 'Returns the verdicts of a batch in which not every attempt was completed: ok, cancel, already or lost.';
