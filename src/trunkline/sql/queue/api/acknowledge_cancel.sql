-- Ends running attempts of a worker as cancelled, on request or because the handler decided so; returns one verdict per job.
-- running -> cancelled. Locks its rows in id order.
create or replace function trunkline.acknowledge_cancel(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_reasons text[] default null
)
returns setof trunkline.verdict
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_locked uuid[];
  v_moves trunkline_internal.move[];
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => array[cardinality(p_reasons)]
  );
  if pg_column_size(p_reasons) > 67108864 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_reasons', 'must_be', 'at most 64 MB', 'bytes', pg_column_size(p_reasons))
    );
  end if;
  v_locked := trunkline_internal.lock_running(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_scope => trunkline.tenant_scope()
  );
  select array_agg(
    row(
      r.job_id, 'cancelled', r.run_at, r.failures, r.crashes, r.deferrals, false,
      coalesce(left(a.reason, 500), r.cancel_reason, 'cancelled'), null, 'cancelled', null
    )::trunkline_internal.move
  )
  into v_moves
  from (
    select distinct on (a.job_id) a.*
    from unnest(p_jobs, p_attempts, p_reasons) as a (job_id, attempt, reason)
    order by a.job_id, a.attempt desc
  ) as a
  join trunkline_internal.running as r on r.job_id = a.job_id
  where r.job_id = any(v_locked);
  perform trunkline_internal.move_running(p_moves => v_moves, p_now => trunkline.clock());
  return query select v.* from trunkline_internal.verdicts(p_jobs => p_jobs, p_attempts => p_attempts, p_moves => v_moves) as v;
end;
$$;
comment on function trunkline.acknowledge_cancel(text, uuid[], integer[], text[]) is 'Ends running attempts of a worker as cancelled, on request or because the handler decided so; returns one verdict per job.';
