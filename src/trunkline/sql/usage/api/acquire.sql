-- Asks for capacity of a limit by name, within a job or outside; returns a grant, or why there is none and when to ask again.
-- p_limit may have keys in braces, which p_keys fills in. p_cost has requests (default 1), tokens (default for a job's call:
-- what such calls used before; otherwise 0) and units (default 0; for quotas in bytes: what such calls used before, or
-- 50,000).
-- With p_job and p_attempt the grant ends with that attempt; otherwise it expires after p_ttl. settle returns it earlier.
-- What a job's claim has charged to this limit is used first. Within the second in which the job was to start, that charge
-- is the grant. Later it is refunded and charged again, because the provider sees the call in a later window. A job that
-- holds a slot of the limit needs no second one.
-- Other limits of the job that have a quota, such as its tenant's budget, are charged the same. There too the first call
-- uses the charge of the claim, and further calls need room.
-- A session that acts for one tenant reaches its own limits, and shared limits only by the names its running job was
-- enqueued under.
-- Waits only for the bucket, which claims hold for milliseconds: call it in a separate transaction.
create or replace function trunkline.acquire(
  p_limit text,
  p_cost jsonb default '{}',
  p_keys jsonb default '{}',
  p_job uuid default null,
  p_attempt integer default null,
  p_ttl interval default '5 minutes',
  p_tenant text default null
)
returns trunkline.grant_answer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answer trunkline.grant_answer;
  v_charged bigint;
  v_cost trunkline_internal.amounts;
  v_first boolean := false;
  v_found record;
  v_holds boolean := false;
  v_job trunkline_internal.running;
  v_limit trunkline_internal.limits;
  v_now timestamptz;
  v_other record;
  v_room record;
  v_scope text := trunkline.tenant_scope();
  v_state trunkline_internal.bucket_states;
begin
  perform trunkline_internal.require_read_committed();
  if p_limit is null or octet_length(p_limit) > 400 or pg_column_size(p_keys) > 65536 or octet_length(p_tenant) > 400
    or p_ttl is null or p_ttl not between interval '1 second' and interval '1 day'
    or num_nonnulls(p_job, p_attempt) = 1 or jsonb_typeof(p_keys) is distinct from 'object'
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_limit, p_keys, p_job, p_attempt or p_ttl',
        'must_be', 'at most 400 bytes, an object of at most 64 KB, job and attempt together or neither, one second to one day'
      )
    );
  end if;
  if p_cost is null or not trunkline_internal.is_cost(p_cost => p_cost) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_cost',
      p_detail => jsonb_build_object(
        'limit', p_limit, 'cost', p_cost, 'must_be', 'whole numbers from 0 to 10^12 as requests, tokens and units'
      )
    );
  end if;
  if v_scope is not null and p_tenant <> v_scope then
    perform trunkline_internal.refuse(p_name => 'tenant_denied', p_detail => jsonb_build_object('tenant', p_tenant));
  end if;
  if p_job is not null then
    select r.* into v_job
    from trunkline_internal.running as r
    where r.job_id = p_job and r.attempt = p_attempt and (v_scope is null or r.tenant = v_scope);
    if not found then
      perform trunkline_internal.refuse(
        p_name => 'stale_attempt', p_detail => jsonb_build_object('job', p_job, 'attempt', p_attempt)
      );
    end if;
  end if;
  v_found := trunkline_internal.find_limit(
    p_template => p_limit, p_keys => p_keys,
    p_tenant => coalesce(v_scope, v_job.tenant, p_tenant), p_job => v_job
  );
  select l.* into strict v_limit from trunkline_internal.limits as l where l.limit_id = v_found.limit_id;
  v_cost.requests := coalesce((p_cost ->> 'requests')::bigint, 1);
  v_cost.tokens := coalesce((p_cost ->> 'tokens')::bigint, 0);
  v_cost.units := coalesce((p_cost ->> 'units')::bigint, 0);
  if trunkline_internal.never_fits(
    p_limit => v_limit, p_requests => v_cost.requests, p_tokens => v_cost.tokens, p_units => v_cost.units
  ) then
    perform trunkline_internal.refuse(
      p_name => 'cost_over_limit',
      p_detail => jsonb_build_object(
        'task', v_job.task, 'limit', v_found.name, 'requests', v_cost.requests, 'tokens', v_cost.tokens, 'units', v_cost.units,
        'requests_per_minute', v_limit.requests_per_minute, 'requests_per_hour', v_limit.requests_per_hour,
        'tokens_per_minute', v_limit.tokens_per_minute, 'tokens_per_hour', v_limit.tokens_per_hour,
        'quota', v_limit.quota
      )
    );
  end if;
  perform trunkline_internal.lock_bucket(p_bucket => v_found.bucket);
  v_now := trunkline.clock();
  v_holds := coalesce(v_found.bucket = any((v_job).bucket_ids), false);
  if v_holds then
    v_first := not exists (
      select
      from trunkline_internal.usage as s
      where s.job_id = p_job and s.attempt = p_attempt and s.bucket = v_found.bucket and s.grant_id is null
    );
  end if;
  v_other := trunkline_internal.other_quotas(
    p_limits => case when v_holds then v_job.limit_ids end, p_buckets => case when v_holds then v_job.bucket_ids end,
    p_bucket => v_found.bucket
  );
  if v_first then
    -- Amounts that the call does not name are the job's estimates.
    v_cost.requests := coalesce((p_cost ->> 'requests')::bigint, v_job.cost_requests);
    v_cost.tokens := coalesce((p_cost ->> 'tokens')::bigint, v_job.cost_tokens);
    v_cost.units := coalesce((p_cost ->> 'units')::bigint, v_job.cost_units);
  elsif p_job is not null and p_cost ->> 'tokens' is null then
    v_cost.tokens := trunkline_internal.default_tokens(
      p_task => v_job.task, p_bucket => v_found.bucket, p_limit => v_limit, p_of_job => case when v_holds then v_job.cost_tokens end
    );
  end if;
  if p_cost ->> 'units' is null and v_cost.units = 0 then
    v_cost.units := coalesce(
      trunkline_internal.default_bytes(
        p_task => v_job.task, p_limits => v_found.limit_id || v_other.limit_ids, p_buckets => v_found.bucket || v_other.bucket_ids
      ),
      0
    );
  end if;
  if v_other.bucket_ids is not null then
    v_answer.free_at := trunkline_internal.other_quotas_open_at(
      p_job => v_job, p_other_limits => v_other.limit_ids, p_other_buckets => v_other.bucket_ids, p_cost => v_cost, p_now => v_now
    );
    if v_answer.free_at is not null then
      v_answer.granted := false;
      v_answer.reason := 'quota';
      v_answer.free_at := nullif(v_answer.free_at, 'infinity'::timestamptz);
      return v_answer;
    end if;
  end if;
  v_answer.grant_id := trunkline_internal.new_id(p_now => v_now);
  v_answer.expires_at := case when p_job is null then v_now + p_ttl else v_job.hard_deadline end;
  if v_first then
    v_charged := floor(extract(epoch from v_job.claimed_at))::bigint;
    -- A call that costs more than its claim has charged needs room for all of it.
    if v_job.claimed_at > v_now - interval '1 second'
      -- A claim in the future means that the clock was set back: it may be long ago.
      and v_job.claimed_at <= v_now + interval '1 second'
      and v_cost.requests <= v_job.cost_requests
      and v_cost.tokens <= v_job.cost_tokens
      and v_cost.units <= v_job.cost_units
    then
      v_cost := row(v_job.cost_requests, v_job.cost_tokens, v_job.cost_units)::trunkline_internal.amounts;
      v_answer.granted := true;
    else
      perform trunkline_internal.adjust_bucket(
        p_bucket => v_found.bucket, p_at => v_charged, p_requests => -v_job.cost_requests, p_tokens => -v_job.cost_tokens,
        p_units => -v_job.cost_units
      );
    end if;
  end if;
  if v_answer.granted is null then
    -- A separate statement: rows read before the lock may be old.
    select r.* into v_room
    from trunkline_internal.bucket_room(
      p_buckets => array[v_found.bucket], p_limits => array[v_found.limit_id], p_now => v_now
    ) as r;
    v_answer.reason := trunkline_internal.why_no_room(
      p_bucket => v_found.bucket, p_limit => v_room.allowed, p_state => v_room.state, p_cost => v_cost,
      p_requests => v_room.requests, p_tokens => v_room.tokens, p_units => v_room.units,
      p_slots => case when not v_holds then v_room.slots end, p_now => v_now
    );
    v_answer.granted := v_answer.reason is null;
    v_state := v_room.state;
    if v_answer.granted then
      v_charged := floor(extract(epoch from v_now))::bigint;
      perform trunkline_internal.charge_buckets(
        p_charges => array[row(
          v_found.bucket, v_found.limit_id, v_cost.requests, v_cost.tokens, v_cost.units,
          array[case when v_holds then p_job else v_answer.grant_id end],
          -- A further call of a running job is no new attempt.
          0
        )::trunkline_internal.bucket_charge],
        p_queues => null, p_lanes => null, p_bound => null, p_rooms => null, p_snapshot => pg_current_snapshot(), p_now => v_now
      );
    else
      v_answer.grant_id := null;
      v_answer.expires_at := null;
      -- Unknown if it depends on the end of another job, as behind a running probe.
      v_answer.free_at := case when (v_room.allowed).status = 'active' then nullif(greatest(
        trunkline_internal.bucket_opens_at(
          p_bucket => v_found.bucket, p_limit => v_room.allowed, p_state => v_state, p_cost => v_cost, p_lane => 0, p_now => v_now
        ),
        v_now
      ), 'infinity'::timestamptz) end;
      v_state.refused := coalesce(v_state.refused, 0) + 1;
      v_state.refused_at := v_now;
      perform trunkline_internal.write_revision(p_bucket => v_found.bucket, p_state => v_state);
    end if;
  end if;
  if v_first or (v_answer.granted and v_other.bucket_ids is not null) then
    perform trunkline_internal.charge_other_quotas(
      p_job => v_job, p_bucket => case when v_first then v_found.bucket end,
      p_other_limits => case when v_answer.granted then v_other.limit_ids end,
      p_other_buckets => case when v_answer.granted then v_other.bucket_ids end,
      p_cost => v_cost, p_charged => v_charged, p_now => v_now
    );
  end if;
  if v_answer.granted then
    insert into trunkline_internal.grants (
      grant_id, bucket, limit_id, name, job_id, attempt, task, tenant, requests, tokens, units, granted_at, charged_at, expires_at,
      other_limit_ids, other_bucket_ids
    )
    values (
      v_answer.grant_id, v_found.bucket, v_found.limit_id, v_found.name, p_job, p_attempt, v_job.task,
      coalesce(v_scope, v_job.tenant, p_tenant), v_cost.requests, v_cost.tokens, v_cost.units, v_now, v_charged, v_answer.expires_at,
      v_other.limit_ids, v_other.bucket_ids
    );
  end if;
  return v_answer;
end;
$$;
comment on function trunkline.acquire(text, jsonb, jsonb, uuid, integer, interval, text) is 'Asks for capacity of a limit by name, within a job or outside; returns a grant, or why there is none and when to ask again.';
