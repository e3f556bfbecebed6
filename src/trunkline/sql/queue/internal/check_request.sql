-- Refuses a request to enqueue that could not be kept: each bad argument with its own code.
-- Called by enqueue for every request and by enqueue_many for the ones its quick look suspects.
create or replace function trunkline_internal.check_request(
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
  p_index integer
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bad text;
  v_bytes integer;
  v_must text;
  v_at jsonb := case when p_index is null then '{}'::jsonb else jsonb_build_object('index', p_index) end;
begin
  if p_payload is null or jsonb_typeof(p_payload) <> 'object' then
    perform trunkline_internal.refuse(
      p_name => 'payload_not_object',
      p_detail => v_at || jsonb_build_object('task', p_task, 'type', coalesce(jsonb_typeof(p_payload), 'missing'))
    );
  end if;
  -- A value read from a table may come compressed; what counts is what a worker will get.
  v_bytes := pg_column_size(case when pg_column_compression(p_payload) is null then p_payload else p_payload || '{}'::jsonb end);
  if v_bytes > p_max_bytes then
    perform trunkline_internal.refuse(
      p_name => 'payload_too_large',
      p_detail => v_at || jsonb_build_object('task', p_task, 'bytes', v_bytes, 'max_payload_bytes', p_max_bytes)
    );
  end if;
  if p_delay < interval '0' then
    perform trunkline_internal.refuse(p_name => 'negative_delay', p_detail => v_at || jsonb_build_object('delay', p_delay));
  end if;
  if p_priority not between -50 and 49 then
    perform trunkline_internal.refuse(
      p_name => 'priority_out_of_range',
      p_detail => v_at || jsonb_build_object('priority', p_priority, 'minimum', -50, 'maximum', 49)
    );
  end if;
  case
    when p_task is null or p_task = '' then
      v_bad := 'p_task'; v_must := 'the name of a task';
    when p_delay is not null and p_run_at is not null then
      v_bad := 'p_delay'; v_must := 'left out when p_run_at is given';
    when p_delay > interval '3650 days' then
      v_bad := 'p_delay'; v_must := 'at most 3650 days';
    when p_run_at not between '1970-01-01 00:00:00+00'::timestamptz and '9000-01-01 00:00:00+00'::timestamptz then
      v_bad := 'p_run_at'; v_must := 'a time between the years 1970 and 9000';
    when p_queue = '' or length(p_queue) > 200 then
      v_bad := 'p_queue'; v_must := '1 to 200 characters';
    when p_tenant = '' or octet_length(p_tenant) > 400 then
      v_bad := 'p_tenant'; v_must := '1 to 400 bytes';
    when p_unique_key = '' or octet_length(p_unique_key) > 1000 then
      v_bad := 'p_unique_key'; v_must := '1 to 1000 bytes';
    when p_idempotency_key = '' or octet_length(p_idempotency_key) > 1000 then
      v_bad := 'p_idempotency_key'; v_must := '1 to 1000 bytes';
    when length(p_correlation_id) > 200 then
      v_bad := 'p_correlation_id'; v_must := 'at most 200 characters';
    when p_max_attempts not between 1 and 1000 then
      v_bad := 'p_max_attempts'; v_must := 'a whole number from 1 to 1000';
    when cardinality(p_tags) > 20 then
      v_bad := 'p_tags'; v_must := 'at most 20 tags, none of them null';
    when array_ndims(p_tags) > 1 or exists (select from unnest(p_tags) as t (tag) where octet_length(t.tag) > 200) then
      v_bad := 'p_tags'; v_must := 'one list of tags of at most 200 bytes each';
    when array_position(p_tags, null) is not null then
      v_bad := 'p_tags'; v_must := 'at most 20 tags, none of them null';
    else
      return;
  end case;
  perform trunkline_internal.refuse(
    p_name => 'invalid_argument',
    p_detail => v_at || jsonb_build_object('argument', v_bad, 'must_be', v_must)
  );
end;
$$;
comment on function trunkline_internal.check_request(text, jsonb, text, integer, timestamptz, interval, text, text, text, text, integer, text[], integer, integer) is 'Refuses a request to enqueue that could not be kept: each bad argument with its own code.';
