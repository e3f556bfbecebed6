-- Returns why a request cannot be enqueued, as the name and detail of the refusal; null if it can. The only list of these rules.
-- Without a SET clause and with a single expression, so that the statement of a batch inlines it: as a call it would cost
-- more than the rest of the checks. Rules that depend on the task are in cost_fault and resolve_cost.
create or replace function trunkline_internal.request_fault(
  p_task text,
  p_payload jsonb,
  p_queue text,
  p_priority integer,
  p_run_at timestamptz,
  p_delay interval,
  p_tenant text,
  p_unique_key text,
  p_idempotency_key text,
  p_correlation_id text,
  p_max_attempts integer,
  p_tags text[],
  p_max_bytes integer,
  p_expires_at timestamptz default null,
  p_now timestamptz default null
)
returns jsonb
language sql
stable
as $$
  select case
    when p_payload is null or pg_catalog.jsonb_typeof(p_payload) <> 'object' then pg_catalog.jsonb_build_object(
      'refusal', 'payload_not_object', 'task', p_task, 'type', coalesce(pg_catalog.jsonb_typeof(p_payload), 'missing')
    )
    -- A value read from a table may be compressed, but the limit is for what a worker receives.
    when pg_catalog.pg_column_size(p_payload) > p_max_bytes
      or (
        pg_catalog.pg_column_compression(p_payload) is not null
        and pg_catalog.pg_column_size(p_payload || '{}'::pg_catalog.jsonb) > p_max_bytes
      )
    then pg_catalog.jsonb_build_object(
      'refusal', 'payload_too_large', 'task', p_task, 'bytes', pg_catalog.pg_column_size(p_payload || '{}'::pg_catalog.jsonb),
      'max_payload_bytes', p_max_bytes
    )
    when p_delay < interval '0' then pg_catalog.jsonb_build_object('refusal', 'negative_delay', 'delay', p_delay)
    when p_priority not between -50 and 49 then pg_catalog.jsonb_build_object(
      'refusal', 'priority_out_of_range', 'priority', p_priority, 'minimum', -50, 'maximum', 49
    )
    when p_task is null or p_task = '' then '{"argument": "p_task", "must_be": "the name of a task"}'::pg_catalog.jsonb
    when p_delay is not null and p_run_at is not null
      then '{"argument": "p_delay", "must_be": "left out when p_run_at is given"}'::pg_catalog.jsonb
    when p_delay > interval '3650 days' then '{"argument": "p_delay", "must_be": "at most 3650 days"}'::pg_catalog.jsonb
    when p_run_at not between '1970-01-01 00:00:00+00'::timestamptz and '9000-01-01 00:00:00+00'::timestamptz
      then '{"argument": "p_run_at", "must_be": "a time between the years 1970 and 9000"}'::pg_catalog.jsonb
    when p_queue = '' or pg_catalog.length(p_queue) > 200
      then '{"argument": "p_queue", "must_be": "1 to 200 characters"}'::pg_catalog.jsonb
    when p_tenant = '' or pg_catalog.octet_length(p_tenant) > 400
      then '{"argument": "p_tenant", "must_be": "1 to 400 bytes"}'::pg_catalog.jsonb
    when p_unique_key = '' or pg_catalog.octet_length(p_unique_key) > 1000
      then '{"argument": "p_unique_key", "must_be": "1 to 1000 bytes"}'::pg_catalog.jsonb
    when p_idempotency_key = '' or pg_catalog.octet_length(p_idempotency_key) > 1000
      then '{"argument": "p_idempotency_key", "must_be": "1 to 1000 bytes"}'::pg_catalog.jsonb
    when pg_catalog.length(p_correlation_id) > 200
      then '{"argument": "p_correlation_id", "must_be": "at most 200 characters"}'::pg_catalog.jsonb
    when p_max_attempts not between 1 and 1000
      then '{"argument": "p_max_attempts", "must_be": "a whole number from 1 to 1000"}'::pg_catalog.jsonb
    when p_expires_at is not null
      and (
        p_expires_at <= greatest(p_now, p_run_at, p_now + p_delay)
        or p_expires_at > '9000-01-01 00:00:00+00'::timestamptz
      )
      then '{"argument": "p_expires_at", "must_be": "later than now and than the time from which the job may start"}'::pg_catalog.jsonb
    when p_tags is null then null
    when pg_catalog.cardinality(p_tags) > 20
      then '{"argument": "p_tags", "must_be": "at most 20 tags, none of them null"}'::pg_catalog.jsonb
    when pg_catalog.array_ndims(p_tags) > 1 or trunkline_internal.longest_text(p_texts => p_tags) > 200
      then '{"argument": "p_tags", "must_be": "one list of tags of at most 200 bytes each"}'::pg_catalog.jsonb
    when pg_catalog.array_position(p_tags, null) is not null
      then '{"argument": "p_tags", "must_be": "at most 20 tags, none of them null"}'::pg_catalog.jsonb
  end
$$;
comment on function trunkline_internal.request_fault(text, jsonb, text, integer, timestamptz, interval, text, text, text, text, integer, text[], integer, timestamptz, timestamptz) is 'Returns why a request cannot be enqueued, as the name and detail of the refusal; null if it can. The only list of these rules.';
