-- Checks a filter of jobs and returns its fields; refuses unknown fields and values of the wrong type.
-- A field that is null counts as absent. A time without a zone is UTC. Fields that only some states have restrict the states.
create or replace function trunkline_internal.read_filter(p_filter jsonb)
returns trunkline_internal.job_filter
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  c_ended constant text[] := array['completed', 'cancelled', 'dead'];
  c_fields constant text[] := array[
    'acknowledged', 'correlation_id', 'created_before', 'created_from', 'error', 'error_group', 'finished_before',
    'finished_from', 'job_ids', 'queue', 'state', 'tag', 'task', 'tenant', 'unique_key'
  ];
  c_most_ids constant integer := 10000;
  c_states constant text[] := array['ready', 'scheduled', 'blocked', 'running', 'completed', 'cancelled', 'dead'];
  v_field text;
  v_filter trunkline_internal.job_filter;
  v_must_be jsonb;
  v_value jsonb;
begin
  if jsonb_typeof(p_filter) <> 'object' then
    perform trunkline_internal.refuse(
      p_name => 'invalid_filter',
      p_detail => jsonb_build_object('type', jsonb_typeof(p_filter), 'must_be', 'a JSON object')
    );
  end if;
  v_filter.states := c_states;
  for v_field, v_value in
    select f.key, f.value from jsonb_each(coalesce(p_filter, '{}')) as f where f.value <> 'null' order by f.key
  loop
    if v_field <> all(c_fields) then
      perform trunkline_internal.refuse(
        p_name => 'invalid_filter', p_detail => jsonb_build_object('field', v_field, 'known', c_fields)
      );
    end if;
    v_must_be := case
      when v_field = 'acknowledged' then
        case when jsonb_typeof(v_value) <> 'boolean' then to_jsonb('true or false'::text) end
      when v_field = 'state' then
        case
          when jsonb_typeof(v_value) not in ('string', 'array') or v_value = '[]' or not to_jsonb(c_states) @> v_value
            then to_jsonb(c_states)
        end
      when v_field = 'job_ids' then
        case
          when jsonb_typeof(v_value) <> 'array'
            or jsonb_array_length(v_value) not between 1 and c_most_ids
            or exists (
              select
              from jsonb_array_elements_text(v_value) as i (id)
              where coalesce(i.id !~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$', true)
            )
            then to_jsonb(format('a list of 1 to %s job ids', c_most_ids))
        end
      when jsonb_typeof(v_value) <> 'string' or length(v_value #>> '{}') not between 1 and 1000 then
        to_jsonb('text of 1 to 1000 characters'::text)
    end;
    if v_must_be is not null then
      perform trunkline_internal.refuse(
        p_name => 'invalid_filter',
        p_detail => jsonb_build_object('field', v_field, 'value', v_value, 'must_be', v_must_be)
      );
    end if;
    begin
      case v_field
        when 'acknowledged' then v_filter.acknowledged := v_value::boolean;
        when 'correlation_id' then v_filter.correlation_id := v_value #>> '{}';
        when 'created_before' then v_filter.created_before := (v_value #>> '{}')::timestamptz;
        when 'created_from' then v_filter.created_from := (v_value #>> '{}')::timestamptz;
        when 'error' then v_filter.error := lower(v_value #>> '{}');
        when 'error_group' then v_filter.error_group := v_value #>> '{}';
        when 'finished_before' then v_filter.finished_before := (v_value #>> '{}')::timestamptz;
        when 'finished_from' then v_filter.finished_from := (v_value #>> '{}')::timestamptz;
        when 'job_ids' then v_filter.job_ids := array(select i.id::uuid from jsonb_array_elements_text(v_value) as i (id));
        when 'queue' then v_filter.queue := v_value #>> '{}';
        when 'state' then
          v_filter.states := array(
            select s.state
            from jsonb_array_elements_text(
              case when jsonb_typeof(v_value) = 'array' then v_value else jsonb_build_array(v_value) end
            ) as s (state)
          );
        when 'tag' then v_filter.tag := v_value #>> '{}';
        when 'task' then v_filter.task := v_value #>> '{}';
        when 'tenant' then v_filter.tenant := v_value #>> '{}';
        when 'unique_key' then v_filter.unique_key := v_value #>> '{}';
      end case;
      if num_nonnulls(v_filter.created_before, v_filter.created_from, v_filter.finished_before, v_filter.finished_from) > 0
        and not (
          coalesce(v_filter.created_before, 'epoch') between 'epoch' and '9000-01-01'::timestamptz
          and coalesce(v_filter.created_from, 'epoch') between 'epoch' and '9000-01-01'::timestamptz
          and coalesce(v_filter.finished_before, 'epoch') between 'epoch' and '9000-01-01'::timestamptz
          and coalesce(v_filter.finished_from, 'epoch') between 'epoch' and '9000-01-01'::timestamptz
        )
      then
        raise datetime_field_overflow;
      end if;
    exception
      when data_exception then
        perform trunkline_internal.refuse(
          p_name => 'invalid_filter',
          p_detail => jsonb_build_object(
            'field', v_field, 'value', v_value, 'must_be', 'a time from 1970 to 9000, for example 2026-01-31T08:00:00Z'
          )
        );
    end;
  end loop;
  if v_filter.acknowledged is not null or v_filter.error_group is not null then
    v_filter.states := array(select s.state from unnest(v_filter.states) as s (state) where s.state = 'dead');
  elsif v_filter.finished_from is not null or v_filter.finished_before is not null then
    v_filter.states := array(select s.state from unnest(v_filter.states) as s (state) where s.state = any(c_ended));
  end if;
  return v_filter;
end;
$$;
comment on function trunkline_internal.read_filter(jsonb) is 'Checks a filter of jobs and returns its fields; refuses unknown fields and values of the wrong type.';
