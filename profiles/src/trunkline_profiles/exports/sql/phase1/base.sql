-- The base of the other scripts: refusals in one place, the numbers that operators change, and who is asking.
-- requires:
-- source: 2.1, 2.12, 2.16

create or replace function exports.refuse(p_code text, p_message text, p_detail jsonb default '{}')
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
      ('unknown_document', 'EX001', 'Pass the id of a document of this user.'),
      ('invalid_request', 'EX002', 'Correct the fields that the detail names, then repeat the request.'),
      ('user_missing', 'EX003', 'Sign in, or pass the user as p_user_id.'),
      ('daily_quota', 'EX004', 'Wait until the next day, UTC; free_at in the detail is when it begins.'),
      ('queue_full', 'EX005', 'Wait until earlier exports have ended, then repeat the request.'),
      ('storage_full', 'EX006', 'Delete exports with exports.delete_export to free space, then repeat the request.'),
      ('unknown_job', 'EX007', 'Pass the id of an export of this user, as create_export_job returned it.'),
      ('already_finished', 'EX008', 'The export has ended: read its status instead.'),
      ('unknown_batch', 'EX009', 'Pass the id of a batch of this user, as create_export_batch returned it.'),
      ('batch_busy', 'EX010', 'Wait until one of your running exports has ended, then repeat the request.'),
      ('unknown_export', 'EX011', 'Pass the id of a row of exports.export_history of this user.'),
      ('export_expired', 'EX012', 'Export the document again: files are kept for seven days.'),
      ('not_administrator', 'EX013', 'Ask an operator, or a person with is_administrator in exports.people.'),
      ('stale_job', 'EX014', 'Stop the work and discard its result: another attempt owns the job or it has ended.'),
      ('step_refused', 'EX015', 'Do what the detail names first, then repeat the step.'),
      ('invalid_attempt', 'EX016', 'Pass the number of an attempt, 1 or more.')
  ) as r (code, state, hint)
  where r.code = p_code;
  raise exception using
    errcode = v_state, message = p_message, hint = v_hint,
    detail = (jsonb_build_object('code', p_code) || coalesce(p_detail, '{}'::jsonb))::text;
end;
$$;
comment on function exports.refuse(text, text, jsonb) is 'Refuses a call with a stable code, a message, the facts as JSON, and a hint on what to do.';

create table if not exists exports.settings (
  only_row boolean primary key default true check (only_row),
  storage_bytes bigint not null default 104857600 check (storage_bytes > 0),
  -- Reserved for each export until the sizes of the user's own are known.
  estimate_bytes bigint not null default 1048576 check (estimate_bytes > 0),
  jobs_per_user integer not null default 20 check (jobs_per_user > 0),
  documents_per_batch integer not null default 10 check (documents_per_batch > 0),
  running_for_batch integer not null default 3 check (running_for_batch > 0),
  retention interval not null default '7 days' check (retention > interval '0'),
  tombstones interval not null default '30 days' check (tombstones > interval '0'),
  job_retention interval not null default '30 days' check (job_retention > interval '0')
);
comment on table exports.settings is 'The numbers of the service, one row. Limits of concurrency, depth and operations are limits of the engine.';
alter table exports.settings enable row level security;
alter table exports.settings force row level security;
drop policy if exists all_rows on exports.settings;
create policy all_rows on exports.settings using (true) with check (true);
insert into exports.settings default values on conflict do nothing;

create or replace function exports.acting_user(p_user_id uuid)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
  v_user text := coalesce(p_user_id::text, v_scope);
begin
  if coalesce(v_user, '') !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' or v_user <> coalesce(v_scope, v_user) then
    perform exports.refuse(
      p_code => 'user_missing',
      p_message => case when v_scope is null then 'the request names no user' else 'a user acts only under their own id' end,
      p_detail => jsonb_build_object('user_id', p_user_id)
    );
  end if;
  return v_user::uuid;
end;
$$;
comment on function exports.acting_user(uuid) is 'Returns the user of a request: the one signed in, or the one that a service names. Refuses a request without one, or for another user.';

create or replace function exports.sees(p_user_id uuid)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select (select trunkline.tenant_scope()) is null or p_user_id::text = (select trunkline.tenant_scope())
$$;
comment on function exports.sees(uuid) is 'Returns whether the session may see what belongs to a user: its own rows, or all of them for a service.';

create or replace function exports.as_megabytes(p_bytes numeric)
returns numeric
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select round(p_bytes / 1048576, 2)
$$;
comment on function exports.as_megabytes(numeric) is 'Returns bytes in units of 1,048,576, with two decimals.';
