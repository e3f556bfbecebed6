-- Takes up to p_limit ready jobs for a worker, each under a lease and a new attempt number, best first.
-- ready -> running; scheduled -> ready for what is due. Queues are served in the order given (null:
-- all), within a queue the higher priority first, within a priority jobs that were handed back, then
-- by sequence. Waits for no lock: rows another call holds are skipped.
-- p_position is what the claim before it returned for the same queues and tasks, '{}' at first;
-- then the last row carries the next one, and where nothing was claimed a single row without a job
-- does. Without it every claim looks from the start.
-- In a transaction that had an id before, the position stays where it is.
-- {"behind": position} looks from the start up to that position, for what rolled-back claims left, and
-- answers with jobs alone. It holds no newer job, which a claim beside it can take: under an old
-- snapshot such a look may take seconds.
-- A look from the start that finds no more ready jobs than it may take takes them all, whatever their
-- lanes. That is the claim of an idle worker: half the time when there is nothing, a tenth less when
-- there is one job.
-- Intended plan: waiting_ready by (queue, lane, sequence) per lane, lazily, so that exactly the
-- claimed rows are locked; then by ctid. Guarded by tests/plans.
create or replace function trunkline.claim(
  p_worker text,
  p_queues text[] default null,
  p_limit integer default 1,
  p_tasks text[] default null,
  p_position jsonb default null
)
returns setof trunkline.claimed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_no_end constant bigint := 9223372036854775807;
  v_asked text[];
  v_audited boolean;
  v_behind boolean := false;
  v_bound bigint;
  v_count integer;
  v_covered bigint[];
  v_days date[];
  v_due boolean;
  v_due_from timestamptz := '-infinity'::timestamptz;
  v_due_until timestamptz;
  v_enabled boolean;
  v_for text;
  v_fresh boolean;
  v_from bigint[];
  v_jobs uuid[];
  v_keeps boolean;
  v_keyed uuid[];
  v_lanes smallint[];
  v_large boolean;
  v_lease interval;
  v_names text[];
  v_next jsonb;
  v_now timestamptz;
  v_orders bigint[];
  v_position jsonb;
  v_queues text[];
  v_ready bigint;
  v_scope text;
  v_sequences bigint[];
  v_snapshot pg_snapshot;
  v_tids tid[];
  v_until bigint[];
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  if p_limit is null or p_limit not between 1 and 10000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 10000)
    );
  end if;
  if array_ndims(p_queues) > 1 or array_ndims(p_tasks) > 1 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_queues or p_tasks', 'must_be', 'one list of names')
    );
  end if;
  perform trunkline_internal.require_read_committed();
  v_scope := trunkline.tenant_scope();
  if p_position is not null then
    v_behind := p_position ? 'behind';
    v_position := case when v_behind then p_position -> 'behind' else p_position end;
    -- The snapshot is taken before the scan: what it calls ended, the scan sees.
    v_snapshot := pg_current_snapshot();
    v_fresh := not v_behind and pg_current_xact_id_if_assigned() is null;
    -- Not md5, which servers in FIPS mode refuse.
    v_for := hashtextextended(jsonb_build_array(p_queues, p_tasks, v_scope)::text, 0)::text;
    if v_position ->> 'for' is distinct from v_for or not trunkline_internal.position_is_sound(p_position => v_position) then
      v_position := '{}';
    end if;
  end if;
  v_keeps := p_position is not null and not v_behind;
  if p_position is null then
    v_now := trunkline.clock();
    -- All in one statement: each takes 30 µs to begin.
    select c.ready, c.due, h.tids, h.jobs, h.keyed, h.large, h.lease, h.audited
    into v_ready, v_due, v_tids, v_jobs, v_keyed, v_large, v_lease, v_audited
    from (
      select
        (select count(*) from (select from trunkline_internal.waiting as w where w.state = 'ready' limit p_limit + 1) as r) as ready,
        exists (select from trunkline_internal.waiting as w where w.state = 'scheduled' and w.run_at <= v_now) as due
      offset 0
    ) as c
    cross join lateral (
      select
        array_agg(k.tid) as tids,
        array_agg(k.job_id) as jobs,
        array_agg(k.job_id) filter (where k.unique_key is not null) as keyed,
        bool_or(k.payload_day is not null) as large,
        (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'lease')::interval as lease,
        exists (select from trunkline_internal.tasks as t where t.audit) as audited
      from (
        select w.ctid as tid, w.job_id, w.unique_key, w.payload_day
        from trunkline_internal.waiting as w
        where c.ready between 1 and p_limit
          and not c.due
          and w.state = 'ready'
          and (p_queues is null or w.queue = any(p_queues))
          and (p_tasks is null or w.task = any(p_tasks))
          and (v_scope is null or w.tenant = v_scope)
          and not exists (select from trunkline_internal.queues as q where q.queue = w.queue and q.paused)
          and not exists (select from trunkline_internal.workers as d where d.worker = p_worker and d.state = 'draining')
          and (
            select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'claims_enabled'
          )::boolean
        limit p_limit
        for update of w skip locked
      ) as k
    ) as h;
    if v_ready = 0 and not v_due then
      return;
    end if;
    -- Where one has a large payload, claim goes its usual way; its own locks do not stop it.
    if v_tids is not null and not v_large then
      return query
      select m.*
      from trunkline_internal.start_attempts(
        p_worker => p_worker, p_tids => v_tids, p_jobs => v_jobs, p_keyed => v_keyed, p_lease => v_lease,
        p_queues => p_queues, p_position => null, p_last => null, p_audited => v_audited
      ) as m;
      if found then
        return;
      end if;
    end if;
  end if;
  v_asked := coalesce(p_queues, array(select distinct l.queue from trunkline_internal.lanes as l order by l.queue));
  -- Ordered once, below: an aggregate that orders for itself costs a sort each.
  select
    array_agg(l.queue),
    array_agg(l.lane),
    array_agg(l.name),
    array_agg(
      case
        when v_behind then 0
        when v_position ? 'late'
          then trunkline_internal.position_floor(p_position => v_position, p_name => l.name, p_snapshot => v_snapshot)
        else coalesce((v_position -> 'lanes' -> l.name ->> 0)::bigint, 0)
      end
    ),
    array_agg(
      case
        when v_behind and v_position ? 'lanes' then coalesce((v_position -> 'lanes' -> l.name ->> 0)::bigint, 0)
        else c_no_end
      end
    ),
    (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'claims_enabled')::boolean
      and not exists (select from trunkline_internal.workers as w where w.worker = p_worker and w.state = 'draining'),
    (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'lease')::interval,
    exists (select from trunkline_internal.tasks as t where t.audit)
  into v_queues, v_lanes, v_names, v_from, v_until, v_enabled, v_lease, v_audited
  from (
    select distinct
      array_position(v_asked, l.queue) as place, -l.lane as rank, l.queue, l.lane, l.queue || '/' || l.lane as name
    from trunkline_internal.lanes as l
    where l.queue = any(v_asked)
      and not exists (select from trunkline_internal.queues as q where q.queue = l.queue and q.paused)
    order by place, rank
  ) as l;
  if not v_enabled or v_queues is null then
    if v_keeps then
      return next row(
        null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
        v_position || jsonb_build_object('for', v_for)
      )::trunkline.claimed_job;
    end if;
    return;
  end if;
  -- Both are read before this transaction has an id: whoever drew a lower number has a lower id.
  v_now := trunkline.clock();
  v_bound := coalesce(pg_sequence_last_value('trunkline_internal.job_sequence'::regclass), 0);
  if v_keeps then
    v_due_from := to_timestamp(
      trunkline_internal.position_floor(p_position => v_position, p_name => '/due', p_snapshot => v_snapshot) / 1e6
    );
  end if;
  v_due_until := v_now;
  if exists (
    select
    from trunkline_internal.waiting as w
    where w.state = 'scheduled' and w.run_at >= v_due_from and w.run_at <= v_now
  ) then
    select p.covered
    into v_due_until
    from trunkline_internal.promote_due(p_now => v_now, p_from => v_due_from, p_limit => greatest(p_limit, 100)) as p;
  end if;
  select
    array_agg(h.tid), array_agg(h.job_id), array_agg(h.place), array_agg(h.sequence),
    array_agg(h.job_id) filter (where h.unique_key is not null),
    array_agg(distinct h.payload_day) filter (where h.payload_day is not null)
  into v_tids, v_jobs, v_orders, v_sequences, v_keyed, v_days
  from (
    select w.tid, w.job_id, w.sequence, w.unique_key, w.payload_day, l.place
    from unnest(v_queues, v_lanes, v_from, v_until) with ordinality as l (queue, lane, from_sequence, until_sequence, place)
    cross join lateral (
      select w.ctid as tid, w.job_id, w.sequence, w.unique_key, w.payload_day
      from trunkline_internal.waiting as w
      where w.queue = l.queue
        and w.lane = l.lane
        and w.state = 'ready'
        and w.sequence > l.from_sequence
        and w.sequence <= l.until_sequence
        and (p_tasks is null or w.task = any(p_tasks))
        and (v_scope is null or w.tenant = v_scope)
      order by w.sequence
      limit p_limit
      for update of w skip locked
    ) as w
    limit p_limit
  ) as h;
  v_count := coalesce(cardinality(v_tids), 0);
  if v_fresh then
    -- Numbers were drawn and others took the jobs: an id, so that this position can follow.
    if v_count = 0 and v_bound > coalesce((
      select min(coalesce(l.value ->> 1, l.value ->> 0)::bigint)
      from jsonb_each(v_position -> 'lanes') as l
      where l.key <> '/due'
    ), -1) then
      perform pg_current_xact_id();
    end if;
    for v_place in 1..cardinality(v_names) loop
      v_covered[v_place] := case
        when v_count < p_limit or v_place < v_orders[v_count] then v_bound
        when v_place = v_orders[v_count] then least(v_sequences[v_count], v_bound)
      end;
    end loop;
    v_next := trunkline_internal.next_position(
      p_position => v_position, p_for => v_for, p_names => v_names || '/due'::text,
      p_covered => v_covered || (extract(epoch from v_due_until) * 1000000)::bigint,
      p_snapshot => v_snapshot, p_now => v_now
    );
  elsif v_keeps then
    v_next := v_position || jsonb_build_object('for', v_for);
  end if;
  if v_count > 0 and v_days is null then
    return query
    select m.*
    from trunkline_internal.start_attempts(
      p_worker => p_worker, p_tids => v_tids, p_jobs => v_jobs, p_keyed => v_keyed, p_lease => v_lease,
      p_queues => v_asked, p_position => v_next, p_last => v_sequences[v_count], p_audited => v_audited
    ) as m;
  elsif v_count > 0 then
    -- Only claims that met a large payload pay for opening the partitions of bodies, and only for
    -- the days they met.
    return query
    select
      m.job_id, m.attempt, m.task, m.queue, m.priority, coalesce(m.payload, b.body), m.tenant, m.correlation_id,
      m.tags, m.failures, m.deferrals, m.max_attempts, m.created_at, m.run_at, m.claimed_at,
      m.lease_expires_at, m.hard_deadline, m.last_error, m."position"
    from trunkline_internal.start_attempts(
      p_worker => p_worker, p_tids => v_tids, p_jobs => v_jobs, p_keyed => v_keyed, p_lease => v_lease,
      p_queues => v_asked, p_position => v_next, p_last => v_sequences[v_count], p_audited => v_audited
    ) with ordinality as m
    left join trunkline_internal.bodies as b
      on m.payload is null and b.job_id = m.job_id and b.kind = 'payload' and b.day = any(v_days)
    order by m.ordinality;
  elsif v_next is not null then
    return next row(
      null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, v_next
    )::trunkline.claimed_job;
  end if;
end;
$$;
comment on function trunkline.claim(text, text[], integer, text[], jsonb) is 'Takes up to p_limit ready jobs for a worker, each under a lease and a new attempt number, best first.';
