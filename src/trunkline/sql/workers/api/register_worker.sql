-- Registers a worker process, so that the engine notices its death after two missed pulses (setting pulse_misses).
-- The worker starts awake: its requests to be notified, made with sleep, are removed.
-- The key signatures of p_detail maps tasks to fingerprints of the payload that this worker's code accepts, of the result, and of
-- the code, with colons between them. It is stored separately from the detail, which every pulse replaces. hand_over compares it.
create or replace function trunkline.register_worker(
  p_worker text,
  p_queues text[] default null,
  p_tasks text[] default null,
  p_host text default null,
  p_pid integer default null,
  p_version text default null,
  p_pulse_interval interval default null,
  p_detail jsonb default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_detail jsonb := case when jsonb_typeof(p_detail) = 'object' then p_detail - 'signatures' else p_detail end;
  v_interval interval := coalesce(p_pulse_interval, trunkline_internal.setting(p_name => 'pulse_interval')::interval);
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
  v_signatures jsonb := p_detail -> 'signatures';
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  if v_interval <= interval '0' or v_interval > interval '1 hour' then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_pulse_interval', 'must_be', 'more than zero and at most one hour')
    );
  end if;
  if not trunkline_internal.is_name_list(p_names => p_queues) or not trunkline_internal.is_name_list(p_names => p_tasks) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_queues or p_tasks', 'must_be', 'one list of at most 10000 names and 1 MB')
    );
  end if;
  perform trunkline_internal.check_worker_detail(p_detail => v_detail);
  if jsonb_typeof(v_signatures) <> 'object' or pg_column_size(v_signatures) > 1048576 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_detail', 'key', 'signatures', 'must_be', 'an object of tasks and fingerprints, at most 1 MB'
      )
    );
  end if;
  -- After a restore into another server, limits count correctly only with translated ids, so translate them before any claim.
  perform trunkline_internal.adopt_buckets();
  insert into trunkline_internal.workers as w (
    worker, started_at, seen_at, pulse_interval, host, pid, version, queues, tasks, detail, tenant, signatures
  )
  values (
    p_worker, v_now, v_now, v_interval, left(p_host, 200), p_pid, left(p_version, 200), p_queues, p_tasks,
    v_detail, v_scope, v_signatures
  )
  on conflict (worker) do update
  set
    started_at = excluded.started_at,
    seen_at = excluded.seen_at,
    pulse_interval = excluded.pulse_interval,
    state = 'active',
    host = excluded.host,
    pid = excluded.pid,
    version = excluded.version,
    queues = excluded.queues,
    tasks = excluded.tasks,
    detail = excluded.detail,
    tenant = excluded.tenant,
    signatures = excluded.signatures
  where v_scope is null or w.tenant = v_scope;
  if not found then
    perform trunkline_internal.refuse(p_name => 'tenant_denied', p_detail => jsonb_build_object('worker', p_worker));
  end if;
  delete from trunkline_internal.sleepers as s where s.worker = p_worker;
end;
$$;
comment on function trunkline.register_worker(text, text[], text[], text, integer, text, interval, jsonb) is 'Registers a worker process, so that the engine notices its death after two missed pulses (setting pulse_misses).';
