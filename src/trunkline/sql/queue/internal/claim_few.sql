-- Claims all ready jobs of a worker's queues and tasks, whatever their lanes, where they are few enough to be taken together.
-- ready -> running. Answers nothing where none fits, or where one has a large payload: claim then goes
-- its usual way, and its own locks do not stop it. Locks the rows it takes, skips locked ones.
create or replace function trunkline_internal.claim_few(
  p_worker text,
  p_queues text[],
  p_limit integer,
  p_tasks text[],
  p_scope text
)
returns setof trunkline.claimed_job
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_jobs uuid[];
  v_keyed uuid[];
  v_large boolean;
  v_lease interval;
  v_tids tid[];
begin
  select
    array_agg(h.tid), array_agg(h.job_id), array_agg(h.job_id) filter (where h.unique_key is not null),
    bool_or(h.payload_day is not null),
    (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'lease')::interval
  into v_tids, v_jobs, v_keyed, v_large, v_lease
  from (
    select w.ctid as tid, w.job_id, w.unique_key, w.payload_day
    from trunkline_internal.waiting as w
    where w.state = 'ready'
      and (p_queues is null or w.queue = any(p_queues))
      and (p_tasks is null or w.task = any(p_tasks))
      and (p_scope is null or w.tenant = p_scope)
      and not exists (select from trunkline_internal.queues as q where q.queue = w.queue and q.paused)
      and not exists (select from trunkline_internal.workers as d where d.worker = p_worker and d.state = 'draining')
      and (
        select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'claims_enabled'
      )::boolean
    limit p_limit
    for update of w skip locked
  ) as h;
  if v_tids is null or v_large then
    return;
  end if;
  return query
  select m.*
  from trunkline_internal.start_attempts(
    p_worker => p_worker, p_tids => v_tids, p_jobs => v_jobs, p_keyed => v_keyed, p_lease => v_lease,
    p_queues => p_queues, p_position => null, p_last => null
  ) as m;
end;
$$;
comment on function trunkline_internal.claim_few(text, text[], integer, text[], text) is 'Claims all ready jobs of a worker''s queues and tasks, whatever their lanes, where they are few enough to be taken together.';
