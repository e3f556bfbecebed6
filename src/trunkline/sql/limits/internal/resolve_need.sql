-- Says what a job takes of its task's limits: {requests, tokens, units, limit, bucket, limit, bucket ...}. Refuses what could never run.
-- Each limit by its filled-in name if there is one of that name, else by the name with its keys. What the job says about
-- its cost goes first; then what jobs of this task turned out to take of the first of its limits that counts tokens or
-- has a quota, as far as it fits; then what the task says.
-- is_guarded tells that one of the limits has something to say about new jobs; is_open that claims look at its lane
-- already. The caller's transaction has its id, or the latter might be wrong by the time it commits.
create or replace function trunkline_internal.resolve_need(
  p_task text,
  p_limits text[],
  p_cost jsonb,
  p_default jsonb,
  p_payload jsonb,
  p_tenant text,
  p_queue text,
  out need bigint[],
  out is_guarded boolean,
  out is_open boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_by bigint;
  v_cost jsonb := coalesce(p_cost, p_default);
  v_found record;
  v_bucket bigint;
  v_buckets bigint[] := array[]::bigint[];
  -- Null until the limit is found whose estimates count.
  v_is_learned boolean := case when p_cost is not null then false end;
  v_learned_tokens bigint;
  v_learned_units bigint;
  v_most bigint[];
  v_name text;
  v_requests bigint;
  v_template text;
  v_tokens bigint;
  v_units bigint;
begin
  v_requests := coalesce((v_cost ->> 'requests')::bigint, 1);
  v_tokens := coalesce((v_cost ->> 'tokens')::bigint, 0);
  v_units := coalesce((v_cost ->> 'units')::bigint, 0);
  is_guarded := false;
  foreach v_template in array p_limits loop
    v_name := case
      when strpos(v_template, '{') = 0 then v_template
      else trunkline_internal.fill_limit_name(p_template => v_template, p_payload => p_payload, p_tenant => p_tenant)
    end;
    if v_name is null or octet_length(v_name) > 400 then
      perform trunkline_internal.refuse(
        p_name => 'limit_key_missing', p_detail => jsonb_build_object('task', p_task, 'limit', v_template)
      );
    end if;
    v_bucket := trunkline_internal.bucket_of(p_name => v_name);
    v_by := v_bucket;
    if v_name <> v_template and not exists (select from trunkline_internal.limits as l where l.bucket = v_bucket) then
      v_by := trunkline_internal.bucket_of(p_name => v_template);
    end if;
    -- Few statements: each costs 10 µs.
    select
      l.limit_id,
      num_nonnulls(l.backpressure_threshold, l.depth_limit, l.quota) > 0 as is_guarded,
      num_nonnulls(l.tokens_per_minute, l.tokens_per_hour, l.quota) > 0 as is_learning,
      trunkline_internal.most_at_once(p_limit => l) as most,
      -- Jobs wait in the lane of their first limit.
      v_buckets = array[]::bigint[] and exists (
        select from trunkline_internal.bucket_queues as q where q.bucket = v_bucket and q.queue = p_queue and not q.closing
      ) as is_open
    into v_found
    from trunkline_internal.limits as l
    where l.bucket = v_by;
    if v_found.limit_id is null then
      perform trunkline_internal.refuse(
        p_name => 'unknown_limit',
        p_detail => jsonb_build_object('task', p_task, 'limit', v_name) || trunkline_internal.known_limits()
      );
    end if;
    v_most := v_found.most;
    if v_is_learned is null and v_found.is_learning then
      -- Zero is what nobody has learned.
      select nullif(e.tokens, 0), nullif(e.units, 0)
      into v_learned_tokens, v_learned_units
      from trunkline_internal.estimates as e
      where e.task = p_task and e.bucket = v_bucket;
      v_is_learned := found;
      v_tokens := coalesce(v_learned_tokens, v_tokens);
      v_units := coalesce(v_learned_units, v_units);
    end if;
    if v_is_learned then
      v_tokens := case when v_learned_tokens is null then v_tokens else least(v_tokens, v_most[2]) end;
      v_units := case when v_learned_units is null then v_units else least(v_units, v_most[3]) end;
    end if;
    if v_requests > v_most[1] or v_tokens > v_most[2] or v_units > v_most[3] then
      perform trunkline_internal.refuse(
        p_name => 'cost_over_limit',
        p_detail => jsonb_strip_nulls(jsonb_build_object(
          'task', p_task, 'limit', v_name, 'requests', v_requests, 'tokens', v_tokens, 'units', v_units,
          'most_requests', v_most[1], 'most_tokens', v_most[2], 'most_units', v_most[3]
        ))
      );
    end if;
    -- Whoever opened the lane has left the name.
    if not v_found.is_open and not exists (
      -- By the bucket: a limit may have thousands of them.
      select from trunkline_internal.bucket_names as n where n.bucket = v_bucket and n.limit_id + 0 = v_found.limit_id
    ) then
      insert into trunkline_internal.bucket_names (bucket, limit_id, name, seen_at)
      values (v_bucket, v_found.limit_id, v_name, trunkline.clock());
    end if;
    is_open := coalesce(is_open, v_found.is_open);
    is_guarded := is_guarded or v_found.is_guarded;
    v_buckets := v_buckets || array[v_found.limit_id::bigint, v_bucket];
  end loop;
  need := array[v_requests, v_tokens, v_units] || v_buckets;
  if current_setting('transaction_isolation') <> 'read committed' then
    -- What is seen may be long gone.
    is_open := false;
  end if;
end;
$$;
comment on function trunkline_internal.resolve_need(text, text[], jsonb, jsonb, jsonb, text, text) is 'Says what a job takes of its task''s limits: {requests, tokens, units, limit, bucket, limit, bucket ...}. Refuses what could never run.';
