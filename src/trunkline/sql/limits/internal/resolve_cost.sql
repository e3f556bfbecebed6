-- Returns what a job costs and the bucket of each of its task's limits. Refuses a cost that could never be met.
-- A limit of the filled-in name takes precedence over the one with keys. The cost that the request names counts first; then
-- what jobs of this task turned out to take of the first limit that counts tokens or has a quota, up to what each limit
-- gives at once; then the task's own cost. is_guarded: one of the limits may delay or refuse new jobs. is_open: claims
-- already scan the lane of the first bucket; the caller's transaction must have its id, or that may be wrong when it commits.
-- resolve_costs does the same for a batch; see there why both exist.
create or replace function trunkline_internal.resolve_cost(
  p_task text,
  p_limits text[],
  p_cost jsonb,
  p_default jsonb,
  p_payload jsonb,
  p_tenant text,
  p_queue text,
  out requests bigint,
  out tokens bigint,
  out units bigint,
  out limit_ids integer[],
  out bucket_ids bigint[],
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
  -- Null until the limit is found whose estimates count.
  v_is_learned boolean := case when p_cost is not null then false end;
  v_learned_tokens bigint;
  v_learned_units bigint;
  v_most trunkline_internal.amounts;
  v_name text;
  v_template text;
begin
  requests := coalesce((v_cost ->> 'requests')::bigint, 1);
  tokens := coalesce((v_cost ->> 'tokens')::bigint, 0);
  units := coalesce((v_cost ->> 'units')::bigint, 0);
  is_guarded := false;
  limit_ids := '{}';
  bucket_ids := '{}';
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
      bucket_ids = '{}' and exists (
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
      -- Zero: nothing has been learned.
      select nullif(e.tokens, 0), nullif(e.units, 0)
      into v_learned_tokens, v_learned_units
      from trunkline_internal.estimates as e
      where e.task = p_task and e.bucket = v_bucket;
      v_is_learned := found;
      tokens := coalesce(v_learned_tokens, tokens);
      units := coalesce(v_learned_units, units);
    end if;
    if v_is_learned then
      tokens := case when v_learned_tokens is null then tokens else least(tokens, v_most.tokens) end;
      units := case when v_learned_units is null then units else least(units, v_most.units) end;
    end if;
    if requests > v_most.requests or tokens > v_most.tokens or units > v_most.units then
      perform trunkline_internal.refuse(
        p_name => 'cost_over_limit',
        p_detail => jsonb_strip_nulls(jsonb_build_object(
          'task', p_task, 'limit', v_name, 'requests', requests, 'tokens', tokens, 'units', units,
          'most_requests', v_most.requests, 'most_tokens', v_most.tokens, 'most_units', v_most.units
        ))
      );
    end if;
    -- The transaction that opened the lane also stored the name.
    if not v_found.is_open and not exists (
      -- By the bucket: a limit may have thousands of buckets.
      select from trunkline_internal.bucket_names as n where n.bucket = v_bucket and n.limit_id + 0 = v_found.limit_id
    ) then
      insert into trunkline_internal.bucket_names (bucket, limit_id, name, seen_at)
      values (v_bucket, v_found.limit_id, v_name, trunkline.clock());
    end if;
    is_open := coalesce(is_open, v_found.is_open);
    is_guarded := is_guarded or v_found.is_guarded;
    limit_ids := limit_ids || v_found.limit_id;
    bucket_ids := bucket_ids || v_bucket;
  end loop;
  if current_setting('transaction_isolation') <> 'read committed' then
    -- The snapshot may be old, and the lane closed since.
    is_open := false;
  end if;
end;
$$;
comment on function trunkline_internal.resolve_cost(text, text[], jsonb, jsonb, jsonb, text, text) is 'Returns what a job costs and the bucket of each of its task''s limits. Refuses a cost that could never be met.';
