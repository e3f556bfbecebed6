-- Makes a limit, or changes the parts that are given; a part given as null is not limited any more. Tells whether it is new.
-- p_parts is an object with requests_per_minute, requests_per_hour, tokens_per_minute, tokens_per_hour and concurrency.
-- A name with keys in braces, as in openai/{model}, is a limit of its own for each value of them; a limit of a filled-in
-- name goes before it. Takes effect at the next claim, whatever waits; a part that is new counts what is claimed from
-- then on.
create or replace function trunkline.set_limit(
  p_limit text,
  p_parts jsonb default '{}',
  p_status text default null,
  p_reason text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_parts constant text[] := array['requests_per_minute', 'requests_per_hour', 'tokens_per_minute', 'tokens_per_hour', 'concurrency'];
  v_bad text;
  v_limit integer;
  v_must text;
  v_now timestamptz := trunkline.clock();
  v_parts jsonb := coalesce(p_parts, '{}'::jsonb);
begin
  case
    when p_limit is null or p_limit = '' or octet_length(p_limit) > 200 then
      v_bad := 'p_limit'; v_must := '1 to 200 bytes';
    when jsonb_typeof(v_parts) <> 'object' or v_parts - c_parts <> '{}'::jsonb then
      v_bad := 'p_parts'; v_must := 'an object with ' || array_to_string(c_parts, ', ');
    when exists (
      select
      from jsonb_each(v_parts) as p
      where case jsonb_typeof(p.value)
        when 'null' then false
        when 'number' then (p.value #>> '{}')::numeric % 1 <> 0
          or (p.value #>> '{}')::numeric not between 0 and case p.key when 'concurrency' then 100000 else 1000000000000 end
        else true
      end
    ) then
      v_bad := 'p_parts'; v_must := 'whole numbers from 0 to 10^12, concurrency to 100000, or null';
    when p_status not in ('active', 'maintenance', 'disabled') then
      v_bad := 'p_status'; v_must := 'active, maintenance or disabled';
    when length(p_reason) > 1000 then
      v_bad := 'p_reason'; v_must := 'at most 1000 characters';
    else
      v_bad := null;
  end case;
  if v_bad is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', v_bad, 'must_be', v_must)
    );
  end if;
  insert into trunkline_internal.limits (name, created_at, updated_at, updated_by)
  values (p_limit, v_now, v_now, session_user)
  on conflict (name) do nothing
  returning limit_id into v_limit;
  update trunkline_internal.limits as l
  set
    requests_per_minute = case
      when v_parts ? 'requests_per_minute' then (v_parts ->> 'requests_per_minute')::bigint else l.requests_per_minute
    end,
    requests_per_hour = case
      when v_parts ? 'requests_per_hour' then (v_parts ->> 'requests_per_hour')::bigint else l.requests_per_hour
    end,
    tokens_per_minute = case
      when v_parts ? 'tokens_per_minute' then (v_parts ->> 'tokens_per_minute')::bigint else l.tokens_per_minute
    end,
    tokens_per_hour = case
      when v_parts ? 'tokens_per_hour' then (v_parts ->> 'tokens_per_hour')::bigint else l.tokens_per_hour
    end,
    concurrency = case
      when v_parts ? 'concurrency' then (v_parts ->> 'concurrency')::integer else l.concurrency
    end,
    status = coalesce(p_status, l.status),
    reason = case when p_status is not null then p_reason else l.reason end,
    updated_at = v_now,
    updated_by = session_user
  where l.name = p_limit;
  if v_limit is not null then
    -- Jobs may wait by this name under a limit with keys: from now on it is this one that counts.
    update trunkline_internal.gate_names as n
    set limit_id = v_limit
    where n.gate = trunkline_internal.gate_of(p_name => p_limit);
    update trunkline_internal.gate_queues as g
    set limit_id = v_limit
    where g.gate = trunkline_internal.gate_of(p_name => p_limit);
  end if;
  perform trunkline_internal.wake_sleepers(p_queues => array(
    select distinct g.queue from trunkline_internal.gate_queues as g
  ));
  return v_limit is not null;
end;
$$;
comment on function trunkline.set_limit(text, jsonb, text, text) is 'Makes a limit, or changes the parts that are given; a part given as null is not limited any more. Tells whether it is new.';
