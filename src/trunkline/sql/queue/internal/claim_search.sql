-- Finds and locks the best jobs that may start now, lane by lane, and charges the limited ones.
-- Limited jobs wait in lanes of their buckets (see select_limited). Those with room are merged with the others by the
-- same order, at most p_limited of them.
create or replace function trunkline_internal.claim_search(
  p_worker text,
  p_queues text[],
  p_limit integer,
  p_tasks text[],
  p_scope text,
  p_position jsonb,
  p_limited integer
)
returns trunkline_internal.claim_batch
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_batch trunkline_internal.claim_batch;
  v_bound bigint;
  v_collided boolean;
  v_due_from timestamptz := '-infinity'::timestamptz;
  v_due_until timestamptz;
  v_has_due boolean;
  v_has_expired boolean;
  v_lanes trunkline_internal.lane_list;
  v_limited trunkline_internal.candidates;
  v_most integer := least(p_limit, coalesce(p_limited, p_limit));
  v_now timestamptz;
  v_scanned trunkline_internal.candidates;
  v_snapshot pg_snapshot;
  v_taken trunkline_internal.candidates;
  v_unnumbered boolean;
begin
  v_lanes := trunkline_internal.claim_lanes(
    p_worker => p_worker, p_queues => p_queues, p_tasks => p_tasks, p_scope => p_scope, p_position => p_position
  );
  if not v_lanes.enabled or v_lanes.queues is null then
    if v_lanes.kept then
      v_batch.position := v_lanes.position || jsonb_build_object('for', v_lanes.made_for);
    end if;
    return v_batch;
  end if;
  -- The clock and the last number are read before this transaction has an id: every transaction that drew a lower
  -- number has a lower id.
  v_now := trunkline.clock();
  v_bound := coalesce(pg_sequence_last_value('trunkline_internal.job_sequence'::regclass), 0);
  v_unnumbered := pg_current_xact_id_if_assigned() is null;
  if v_lanes.kept then
    v_due_from := to_timestamp(
      trunkline_internal.position_floor(p_position => v_lanes.position, p_name => '/due', p_snapshot => v_lanes.snapshot) / 1e6
    );
  end if;
  v_due_until := v_now;
  -- One statement, because each takes 30 µs to start.
  select
    exists (select from trunkline_internal.waiting as w where w.attempt = 0 and w.expires_at <= v_now),
    exists (select from trunkline_internal.waiting as w where w.state = 'scheduled' and w.run_at between v_due_from and v_now)
  into v_has_expired, v_has_due;
  if v_has_expired then
    perform trunkline_internal.expire_due(p_now => v_now, p_limit => greatest(p_limit, 100));
  end if;
  if v_has_due then
    v_due_until := (trunkline_internal.promote_due(p_now => v_now, p_from => v_due_from, p_limit => greatest(p_limit, 100))).covered;
    -- Some of them may be limited.
    v_lanes.limited := true;
  end if;
  -- Limited jobs first, so that their scan also starts before this transaction has an id.
  if v_lanes.limited and v_most > 0 and not v_lanes.behind
    and trunkline_internal.buckets_may_open(p_queues => v_lanes.queues, p_now => v_now)
  then
    v_snapshot := pg_current_snapshot();
    v_limited := trunkline_internal.select_limited(
      p_queues => v_lanes.queues, p_lanes => v_lanes.lanes, p_limit => v_most, p_tasks => p_tasks, p_scope => p_scope,
      p_now => v_now, p_snapshot => v_snapshot, p_eager => true
    );
  end if;
  v_scanned := trunkline_internal.claim_scan(
    p_lanes => v_lanes, p_limit => p_limit, p_tasks => p_tasks, p_scope => p_scope, p_now => v_now
  );
  if v_limited.tids is null then
    v_taken := v_scanned;
  else
    v_taken := trunkline_internal.take_limited(
      p_limited => v_limited, p_others => v_scanned, p_limit => p_limit, p_most => v_most, p_queues => v_lanes.queues,
      p_lanes => v_lanes.lanes, p_tasks => p_tasks, p_scope => p_scope, p_now => v_now, p_snapshot => v_snapshot
    );
  end if;
  if v_lanes.kept then
    v_batch.position := trunkline_internal.claim_next_position(
      p_lanes => v_lanes, p_scanned => v_scanned.others, p_taken => v_taken.others,
      p_place => v_scanned.places[v_taken.others], p_sequence => v_scanned.sequences[v_taken.others],
      p_limit => p_limit, p_bound => v_bound, p_due_until => v_due_until, p_now => v_now
    );
  end if;
  if v_taken.tids is null then
    return v_batch;
  end if;
  v_batch.tids := v_taken.tids;
  v_batch.jobs := v_taken.jobs;
  v_batch.keyed := v_taken.keyed;
  v_batch.first_day := v_taken.first_day;
  v_batch.last_day := v_taken.last_day;
  v_batch.bearer := v_taken.jobs[cardinality(v_taken.jobs)];
  v_batch.lease := v_lanes.lease;
  v_batch.audited := v_lanes.audited;
  -- A separate statement: within the scan it would descend the index once for each job.
  v_collided := exists (select from trunkline_internal.running as r where r.job_id = any(v_batch.jobs));
  -- Read after the rows were locked, when the transaction has its id: the position of reclaim relies on that too.
  v_batch.claimed_at := trunkline.clock();
  if v_collided then
    v_batch := trunkline_internal.claim_collisions(p_batch => v_batch);
  end if;
  if v_taken.charges is not null then
    perform trunkline_internal.claim_charge(
      p_taken => v_taken, p_lanes => v_lanes, p_limit => p_limit, p_most => v_most,
      p_bound => case when v_unnumbered then v_bound end, p_snapshot => v_snapshot, p_now => v_batch.claimed_at
    );
  end if;
  return v_batch;
end;
$$;
comment on function trunkline_internal.claim_search(text, text[], integer, text[], text, jsonb, integer) is 'Finds and locks the best jobs that may start now, lane by lane, and charges the limited ones.';
