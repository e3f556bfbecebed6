-- Refuses a task policy that cannot work; the detail names the argument.
create or replace function trunkline_internal.check_policy(
  p_task text,
  p_queue text,
  p_lease interval,
  p_hard_limit interval,
  p_max_attempts integer,
  p_backoff jsonb,
  p_unique_until text,
  p_crash_limit integer,
  p_priority integer,
  p_profile text,
  p_limits text[],
  p_cost jsonb
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bad text;
  v_must text;
begin
  if p_priority not between -50 and 49 then
    perform trunkline_internal.refuse(
      p_name => 'priority_out_of_range',
      p_detail => jsonb_build_object('task', p_task, 'priority', p_priority, 'minimum', -50, 'maximum', 49)
    );
  end if;
  case
    when p_task is null or p_task = '' or length(p_task) > 200 then
      v_bad := 'p_task'; v_must := '1 to 200 characters';
    when p_queue = '' or length(p_queue) > 200 then
      v_bad := 'p_queue'; v_must := '1 to 200 characters';
    when p_profile = '' or octet_length(p_profile) > 200 then
      v_bad := 'p_profile'; v_must := '1 to 200 bytes';
    when p_lease not between interval '1 second' and interval '365 days' then
      v_bad := 'p_lease'; v_must := 'one second to 365 days';
    when p_hard_limit <= interval '0' or p_hard_limit > interval '3650 days' then
      v_bad := 'p_hard_limit'; v_must := 'more than zero and at most 3650 days';
    when p_max_attempts not between 1 and 1000 then
      v_bad := 'p_max_attempts'; v_must := 'a whole number from 1 to 1000';
    when p_unique_until not in ('claim', 'end') then
      v_bad := 'p_unique_until'; v_must := 'claim or end';
    when p_crash_limit not between 1 and 1000 then
      v_bad := 'p_crash_limit'; v_must := 'a whole number from 1 to 1000';
    when array_ndims(p_limits) > 1 or cardinality(p_limits) > 5 then
      v_bad := 'p_limits'; v_must := 'at most 5 names of limits';
    when array_position(p_limits, null) is not null
      or exists (select from unnest(p_limits) as l (name) where not trunkline_internal.is_limit_name(p_name => l.name))
      or (select count(distinct l.name) < count(*) from unnest(p_limits) as l (name))
    then
      v_bad := 'p_limits'; v_must := 'at most 5 different names of limits, as set_limit takes them';
    when p_cost is not null and not trunkline_internal.is_cost(p_cost => p_cost) then
      v_bad := 'p_cost'; v_must := 'an object with requests, tokens and units, whole numbers from 0 to 10^12';
    when p_backoff is not null and (jsonb_typeof(p_backoff) <> 'object' or pg_column_size(p_backoff) > 10000) then
      v_bad := 'p_backoff'; v_must := 'an object with base, factor, cap (numbers, seconds) and jitter (0 to 1)';
    when exists (
      select
      from jsonb_each(p_backoff) as part
      where part.key not in ('base', 'factor', 'cap', 'jitter')
        or jsonb_typeof(part.value) <> 'number'
        or (part.value #>> '{}')::numeric < 0
        or (part.key = 'factor' and (part.value #>> '{}')::numeric not between 1 and 100)
        or (part.key = 'jitter' and (part.value #>> '{}')::numeric > 1)
        or (part.value #>> '{}')::numeric > 315360000
        or ((part.value #>> '{}')::numeric <> 0 and (part.value #>> '{}')::numeric < 0.000001)
    ) then
      v_bad := 'p_backoff'; v_must := 'base and cap in seconds (zero to ten years), factor 1 to 100, jitter 0 to 1, nothing else';
    else
      return;
  end case;
  perform trunkline_internal.refuse(
    p_name => 'invalid_policy',
    p_detail => jsonb_build_object('task', p_task, 'argument', v_bad, 'must_be', v_must)
  );
end;
$$;
comment on function trunkline_internal.check_policy(text, text, interval, interval, integer, jsonb, text, integer, integer, text, text[], jsonb) is 'Refuses a task policy that cannot work; the detail names the argument.';
