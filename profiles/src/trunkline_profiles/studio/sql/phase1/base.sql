-- The base of the other scripts: refusals in one place, and the rule about content in the database.
-- requires:
-- source: 2.1 (goals), 2.10 (security)

create or replace function studio.refuse(p_code text, p_message text, p_detail jsonb default '{}')
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hint text;
  v_state text;
begin
  select r.state, r.hint into v_state, v_hint
  from (
    values
      ('unknown_type', 'TA001', 'Pass one of the types of studio.job_types.'),
      ('invalid_params', 'TA002', 'Pass person1 and person2 with name and born, and systems as a list of names from studio.systems.'),
      ('too_large', 'TA003', 'Upload the content as an artifact and pass a reference: tables hold metadata only.'),
      ('unknown_job', 'TA004', 'Pass the id of a job of this user, as start_job returned it.'),
      ('user_missing', 'TA005', 'Sign in, or pass the user as p_user_id.'),
      ('unknown_task_type', 'TA006', 'Pass types of studio.task_types.'),
      ('stale_task', 'TA007', 'Stop the work and discard its result: another attempt owns the task or it has ended.'),
      ('invalid_artifact', 'TA008', 'Pass the path that prepare_artifact returned, with the bytes and the sha256 of the file.'),
      ('step_refused', 'TA009', 'Do what the detail names first, then repeat the step.'),
      ('start_elsewhere', 'TA010', 'Start the job in the older system, or take the step new_to_queue of the cut-over.')
  ) as r (code, state, hint)
  where r.code = p_code;
  raise exception using
    errcode = v_state, message = p_message, hint = v_hint,
    detail = (jsonb_build_object('code', p_code) || coalesce(p_detail, '{}'::jsonb))::text;
end;
$$;
comment on function studio.refuse(text, text, jsonb) is 'Refuses a call with a stable code, a message, the facts as JSON, and a hint on what to do.';

create or replace function studio.max_bytes()
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select s.value::integer from trunkline.settings as s where s.name = 'max_payload_bytes'
$$;
comment on function studio.max_bytes() is 'Returns the largest size of params, input and output: the engine''s setting max_payload_bytes, 256 KB unless it was changed.';

create or replace function studio.content_problem(p_value jsonb)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Shorter strings may be hashes or ids.
  c_longest constant integer := 1024;
  v_bytes bigint := octet_length(p_value::text);
  v_key text;
  v_max integer := studio.max_bytes();
begin
  if v_bytes > v_max then
    return format('it has %s bytes, and %s are allowed', v_bytes, v_max);
  end if;
  select k.pair ->> 'key' into v_key
  from jsonb_path_query(p_value, '$.** ? (@.type() == "object").keyvalue()') as k (pair)
  where k.pair ->> 'key' ~* '(^|_)base64$|Base64$|^(audio|pdf|file)_?(data|content)$'
    and jsonb_typeof(k.pair -> 'value') = 'string'
  limit 1;
  if found then
    return format('field %s is made for base64', v_key);
  end if;
  if exists (
    select
    from jsonb_path_query(p_value, '$.** ? (@.type() == "string")') as s (string)
    cross join lateral (select s.string #>> '{}' as text) as t
    where t.text ~ '^data:[^,]*;base64,' or length(t.text) >= c_longest and t.text !~ '[^A-Za-z0-9+/=_\r\n-]'
  ) then
    return 'it contains base64';
  end if;
  return null;
end;
$$;
comment on function studio.content_problem(jsonb) is 'Returns why a value must not be stored in a table: it is too large or contains the content of a file. Null if it may.';

create or replace function studio.require_small(p_value jsonb, p_what text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text := studio.content_problem(p_value => p_value);
begin
  if v_problem is not null then
    perform studio.refuse(
      p_code => 'too_large', p_message => format('%s cannot be stored: %s', p_what, v_problem),
      p_detail => jsonb_build_object('value', p_what, 'problem', v_problem)
    );
  end if;
end;
$$;
comment on function studio.require_small(jsonb, text) is 'Refuses a value that is too large for a table or contains the content of a file.';
