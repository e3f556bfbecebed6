-- Takes up to p_limit ready jobs for a worker, each under a lease and a new attempt number, best first.
-- ready -> running; scheduled -> ready for what is due. Queues are served in the order given (null:
-- all), within a queue the higher priority first, within a priority jobs that were handed back, then
-- by sequence. Waits for no lock: rows another call holds are skipped, and its turn at a wide limit comes within 40 ms
-- or is passed by.
-- p_position is what the claim before it returned for the same queues and tasks, '{}' at first;
-- then the last row carries the next one, and where nothing was claimed a single row without a job
-- does. Without it every claim looks from the start.
-- In a transaction that had an id before, the position stays where it is.
-- {"behind": position} looks from the start up to that position, for what rolled-back claims left, and
-- answers with jobs alone. It holds no newer job, which a claim beside it can take: under an old
-- snapshot such a look may take seconds.
-- Limited jobs wait in lanes of their own (see select_limited); what has room there is merged in by its order, at most
-- p_limited of them: what is charged must start by start_by, a second later, or be released unstarted.
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
  p_position jsonb default null,
  p_limited integer default null
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
  -- One of sixteen serves queues that age from their lowest lanes.
  v_aged boolean := trunkline_internal.draw() < 0.0625;
  v_answer trunkline.claimed_job;
  v_asked text[];
  v_audited boolean;
  v_behind boolean := false;
  v_bodies jsonb[];
  v_bound bigint;
  v_collided boolean;
  v_count integer := 0;
  v_covered bigint[];
  v_due boolean;
  v_due_from timestamptz := '-infinity'::timestamptz;
  v_due_until timestamptz;
  v_enabled boolean;
  v_first_day date;
  v_for text;
  v_fresh boolean;
  v_from bigint[];
  v_has_buckets boolean;
  v_buckets_snapshot pg_snapshot;
  v_jobs uuid[];
  v_keeps boolean;
  v_keyed uuid[];
  v_lanes smallint[];
  v_large uuid[];
  v_last_day date;
  v_last uuid;
  v_lease interval;
  v_limited trunkline_internal.candidates;
  v_most integer := least(p_limit, coalesce(p_limited, p_limit));
  v_names text[];
  v_next jsonb;
  v_now timestamptz;
  v_orders bigint[];
  v_position jsonb;
  v_queues text[];
  v_ready bigint;
  v_scanned integer := 0;
  v_scope text;
  v_sequences bigint[];
  v_snapshot pg_snapshot;
  v_start_by timestamptz;
  v_taken trunkline_internal.candidates;
  v_tids tid[];
  v_unnumbered boolean;
  v_until bigint[];
begin
  perform trunkline_internal.check_claim(
    p_worker => p_worker, p_queues => p_queues, p_limit => p_limit, p_tasks => p_tasks, p_limited => p_limited
  );
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
    select c.ready, c.due, c.limited, h.tids, h.jobs, h.keyed, h.first_day, h.last_day, h.collided, h.lease, h.audited
    into v_ready, v_due, v_has_buckets, v_tids, v_jobs, v_keyed, v_first_day, v_last_day, v_collided, v_lease, v_audited
    from (
      select
        (
          select count(*)
          from (select from trunkline_internal.waiting as w where w.state = 'ready' and w.bucket is null limit p_limit + 1) as r
        ) as ready,
        exists (select from trunkline_internal.waiting as w where w.state = 'scheduled' and w.run_at <= v_now) as due,
        exists (select from trunkline_internal.bucket_queues) as limited
      offset 0
    ) as c
    cross join lateral (
      select
        array_agg(k.tid) as tids,
        array_agg(k.job_id) as jobs,
        array_agg(k.job_id) filter (where k.unique_key is not null) as keyed,
        min(k.payload_day) as first_day,
        max(k.payload_day) as last_day,
        bool_or(exists (select from trunkline_internal.running as r where r.job_id = k.job_id)) as collided,
        (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'lease')::interval as lease,
        exists (select from trunkline_internal.tasks as t where t.audit) as audited
      from (
        select w.ctid as tid, w.job_id, w.unique_key, w.payload_day
        from trunkline_internal.waiting as w
        where c.ready between 1 and p_limit
          and not c.due
          and not c.limited
          and w.state = 'ready'
          and w.bucket is null
          and (p_queues is null or w.queue = any(p_queues))
          and (p_tasks is null or w.task = any(p_tasks))
          and (v_scope is null or w.tenant = v_scope)
          and not exists (select from trunkline_internal.queues as q where q.queue = w.queue and q.paused)
          and not exists (select from trunkline_internal.workers as d where d.worker = p_worker and d.state = 'draining')
          and (
            select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = 'claims_enabled'
          )::boolean
        order by array_position(p_queues, w.queue), w.queue, w.lane desc, w.sequence
        limit p_limit
        for update of w skip locked
      ) as k
    ) as h;
    if v_ready = 0 and not v_due and not v_has_buckets then
      return;
    end if;
    v_count := coalesce(cardinality(v_tids), 0);
  end if;
  if v_count = 0 then
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
      exists (select from trunkline_internal.tasks as t where t.audit),
      exists (select from trunkline_internal.bucket_queues)
    into v_queues, v_lanes, v_names, v_from, v_until, v_enabled, v_lease, v_audited, v_has_buckets
    from (
      select distinct
        array_position(v_asked, l.queue) as place,
        case
          when not v_aged or not exists (select from trunkline_internal.queues as q where q.queue = l.queue and q.ageing) then -l.lane
          -- The other way round within each half: what is bulk stays behind what is not.
          when l.lane >= 0 then l.lane - 1000
          else l.lane + 1000
        end as rank,
        l.queue, l.lane, l.queue || '/' || l.lane as name
      from trunkline_internal.lanes as l
      where l.queue = any(v_asked)
        and not exists (select from trunkline_internal.queues as q where q.queue = l.queue and q.paused)
      order by place, rank
    ) as l;
    if not v_enabled or v_queues is null then
      if v_keeps then
        v_answer.position := v_position || jsonb_build_object('for', v_for);
        return next v_answer;
      end if;
      return;
    end if;
    -- Both are read before this transaction has an id: whoever drew a lower number has a lower id.
    v_now := trunkline.clock();
    v_bound := coalesce(pg_sequence_last_value('trunkline_internal.job_sequence'::regclass), 0);
    v_unnumbered := pg_current_xact_id_if_assigned() is null;
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
      v_has_buckets := v_has_buckets or exists (select from trunkline_internal.bucket_queues);
    end if;
    -- Before the others, so that it reads before this transaction has an id.
    if v_has_buckets and not v_behind and v_most > 0 and trunkline_internal.buckets_may_open(p_queues => v_queues, p_now => v_now) then
      v_buckets_snapshot := pg_current_snapshot();
      v_limited := trunkline_internal.select_limited(
        p_queues => v_queues, p_lanes => v_lanes, p_limit => v_most, p_tasks => p_tasks, p_scope => v_scope,
        p_now => v_now, p_snapshot => v_buckets_snapshot, p_eager => true
      );
    end if;
    select
      array_agg(h.tid), array_agg(h.job_id), array_agg(h.place), array_agg(h.sequence),
      array_agg(h.job_id) filter (where h.unique_key is not null),
      min(h.payload_day), max(h.payload_day)
    into v_tids, v_jobs, v_orders, v_sequences, v_keyed, v_first_day, v_last_day
    from (
      select w.tid, w.job_id, w.sequence, w.unique_key, w.payload_day, l.place
      from unnest(v_queues, v_lanes, v_from, v_until) with ordinality as l (queue, lane, from_sequence, until_sequence, place)
      cross join lateral (
        select w.ctid as tid, w.job_id, w.sequence, w.unique_key, w.payload_day
        from trunkline_internal.waiting as w
        where w.queue = l.queue
          and w.lane = l.lane
          and w.state = 'ready'
          and w.bucket is null
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
    v_scanned := coalesce(cardinality(v_tids), 0);
    v_count := v_scanned;
    if v_limited.tids is not null then
      v_taken := trunkline_internal.take_limited(
        p_limited => v_limited,
        p_others => row(v_tids, v_jobs, v_orders, v_sequences, v_keyed, v_first_day, v_last_day, 'exclusive', false, v_scanned, null, null),
        p_limit => p_limit, p_most => v_most, p_queues => v_queues, p_lanes => v_lanes, p_tasks => p_tasks,
        p_scope => v_scope, p_now => v_now, p_snapshot => v_buckets_snapshot
      );
      v_tids := v_taken.tids;
      v_jobs := v_taken.jobs;
      v_keyed := v_taken.keyed;
      v_first_day := v_taken.first_day;
      v_last_day := v_taken.last_day;
      v_count := v_taken.others;
    end if;
    -- Of the others, how many it takes; all it met are covered only if it takes them all.
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
          when (v_scanned < p_limit and v_count = v_scanned) or v_place < v_orders[v_count] then v_bound
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
    v_count := coalesce(cardinality(v_tids), 0);
    v_last := v_jobs[v_count];
    if v_count > 0 then
      -- Not part of the statement above: there it would be one descent of the index for each job.
      v_collided := exists (select from trunkline_internal.running as r where r.job_id = any(v_jobs));
    end if;
  end if;
  if v_count = 0 then
    if v_next is not null then
      v_answer.position := v_next;
      return next v_answer;
    end if;
    return;
  end if;
  -- After the rows were locked, so after the transaction has its id: reclaim's position relies on it as this one does.
  v_now := trunkline.clock();
  v_start_by := v_now + interval '1 second';
  -- An id that is running already can only come from outside. Looked for instead of caught: a handler
  -- of errors would be a subtransaction for every claim, and could not take back rows already returned.
  if v_collided then
    perform trunkline_internal.bury_collisions(p_tids => v_tids, p_now => v_now);
    select array_agg(w.job_id), array_agg(w.job_id) filter (where w.unique_key is not null)
    into v_jobs, v_keyed
    from trunkline_internal.waiting as w
    where w.ctid = any(v_tids);
    -- The job that was to carry the position may be gone: a row of its own does.
    v_last := null;
  end if;
  if v_taken.charges is not null then
    if v_taken.locking = 'exclusive' then
      perform trunkline_internal.charge_buckets(
        p_charges => v_taken.charges, p_queues => v_queues, p_lanes => v_lanes,
        p_bound => case when v_unnumbered then v_bound end, p_rooms => v_taken.rooms, p_snapshot => v_buckets_snapshot,
        p_now => v_now
      );
    else
      perform trunkline_internal.charge_shared(p_charges => v_taken.charges, p_now => v_now);
    end if;
    if cardinality(v_tids) = p_limit or cardinality(v_tids) - v_taken.others = v_most then
      -- Others may have passed these buckets by meanwhile and gone to sleep, and there may be more.
      perform trunkline_internal.wake_sleepers(p_queues => v_asked);
    end if;
  end if;
  if v_first_day is not null then
    -- Only claims that met a large payload pay for opening the partitions of bodies.
    select array_agg(b.job_id), array_agg(b.body)
    into v_large, v_bodies
    from trunkline_internal.bodies as b
    where b.job_id = any(v_jobs) and b.kind = 'payload' and b.day between v_first_day and v_last_day;
  end if;
  -- Answers straight from the insert, in the order of the array: a statement that deleted, inserted and
  -- sorted stored each row three times on its way (a sixth of the claim). Guarded by tests/plans.
  return query
  insert into trunkline_internal.running as r (
    job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at,
    deferred_since, attempt, payload_day, failures, crashes, deferrals, max_attempts, lane, audit,
    queue, task, worker, tenant, unique_key, correlation_id, retry_of, tags, payload, last_error,
    cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids
  )
  select
    w.job_id, w.sequence, v_now,
    v_now + least(coalesce(t.lease, v_lease), coalesce(t.hard_limit, 4 * coalesce(t.lease, v_lease))),
    v_now + coalesce(t.hard_limit, 4 * coalesce(t.lease, v_lease)),
    w.run_at, w.created_at, w.deferred_since, w.attempt + 1, w.payload_day, w.failures, w.crashes,
    w.deferrals, w.max_attempts, w.lane, coalesce(t.audit, false), w.queue, w.task, p_worker, w.tenant,
    w.unique_key, w.correlation_id, w.retry_of, w.tags, w.payload, w.last_error,
    w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids
  from unnest(v_tids) as u (tid)
  join trunkline_internal.waiting as w on w.ctid = u.tid
  left join trunkline_internal.tasks as t on t.task = w.task
  returning
    r.job_id, r.attempt, r.task, r.queue, (r.lane >> 1)::integer,
    case when r.payload_day is null then r.payload else v_bodies[array_position(v_large, r.job_id)] end,
    r.tenant, r.correlation_id, r.tags, r.failures::integer, r.deferrals, r.max_attempts::integer,
    r.created_at, r.run_at, r.claimed_at, r.lease_expires_at, r.hard_deadline, r.last_error,
    case when r.job_id = v_last then v_next end,
    case when r.bucket_ids is not null then v_start_by end;
  if v_collided and v_next is not null then
    v_answer.position := v_next;
    return next v_answer;
  end if;
  delete from trunkline_internal.waiting as w where w.ctid = any(v_tids);
  -- What few jobs need is done apart, as in complete.
  if v_keyed is not null then
    delete from trunkline_internal.unique_keys as k
    where k.job_id = any(array(
      select r.job_id
      from trunkline_internal.running as r
      where r.job_id = any(v_keyed)
        and exists (select from trunkline_internal.tasks as t where t.task = r.task and t.unique_until = 'claim')
    ));
  end if;
  if v_audited then
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor)
    select v_now, r.job_id, r.attempt, 'claimed', 'running', r.task, r.queue, r.tenant, p_worker, session_user
    from trunkline_internal.running as r
    where r.job_id = any(v_jobs) and r.audit;
  end if;
end;
$$;
comment on function trunkline.claim(text, text[], integer, text[], jsonb, integer) is 'Takes up to p_limit ready jobs for a worker, each under a lease and a new attempt number, best first.';
