-- The base of the other scripts: refusals in one place, and the caller's identity.
-- requires:
-- source: 9 (roles)

create or replace function clinical.refuse(p_code text, p_message text, p_detail jsonb default '{}')
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
      ('unknown_job_type', 'CP001', 'Pass one of the types of clinical.job_types; a new one is a row there.'),
      ('payload_empty', 'CP002', 'Pass a JSON object with at least one field.'),
      ('payload_not_object', 'CP003', 'Pass a JSON object, for example {"shell_file_id": "..."}.'),
      (
        'invalid_estimate', 'CP004',
        'Pass estimated_tokens as a whole number from 0 to the tokens per minute of the endpoint, or leave it out for 1000.'
      ),
      ('enqueue_disabled', 'CP005', 'Nothing was stored. Repeat the call when queue.v3_enqueue_enabled is true again.'),
      ('uploads_stopped', 'CP006', 'Nothing was stored. Repeat the call when the maintenance is over.'),
      ('unknown_file', 'CP007', 'Pass the id of a row of clinical.shell_files as shell_file_id.'),
      ('unknown_endpoint', 'CP008', 'Insert a row for the provider and the endpoint into clinical.api_rate_limits.'),
      (
        'invalid_configuration', 'CP009',
        'Pass a value of the kind and the range that clinical.configuration_keys names; a timeout is three heartbeats or more.'
      ),
      (
        'audit_missing', 'CP010',
        'Write through clinical.write_record, or call clinical.log_audit_event for the row in the same transaction.'
      ),
      ('invalid_path', 'CP011', 'Store the file in the folder of its patient: PATIENT/..., without any other patient''s id.'),
      (
        'not_writable', 'CP012',
        'Change jobs by the functions of this schema: enqueue_job_v3, cancel_job, requeue_dead_letter and the like.'
      ),
      ('job_id_missing', 'CP013', 'Pass the id of a job of that patient: every event is about a job.'),
      ('patient_missing', 'CP014', 'Pass p_patient_id: an event about clinical data names its patient.'),
      ('stale_stage', 'CP015', 'Stop the work and discard its result: another attempt owns the job or it has ended.'),
      ('invalid_limit', 'CP016', 'requests_per_minute is a whole number from 0; leave the other limits null if there is none.'),
      ('invalid_import', 'CP017', 'Correct the rows named in the detail, or drop what depends on the column and recreate it afterwards.'),
      ('step_refused', 'CP018', 'Do what the detail names first, then repeat the step.'),
      (
        'audit_denied', 'CP019',
        'Name the attempt that you run (p_job_id, p_attempt, p_worker) and the patient of its job. '
        'Events about tables of this profile are written by its functions.'
      ),
      (
        'job_type_kept', 'CP020',
        'Set is_active to false: a type keeps its name and its row. Types of the pipeline and of the audit stay active.'
      ),
      ('job_type_inactive', 'CP021', 'Let an operator set is_active of the row of clinical.job_types to true.'),
      ('invalid_argument', 'CP022', 'Pass a value within the range that the detail names.'),
      ('access_denied', '42501', 'Ask the owner of the profile to grant access to it.')
  ) as r (code, state, hint)
  where r.code = p_code;
  raise exception using
    errcode = v_state, message = p_message, hint = v_hint,
    detail = (jsonb_build_object('code', p_code) || coalesce(p_detail, '{}'::jsonb))::text;
end;
$$;
comment on function clinical.refuse(text, text, jsonb) is 'Refuses a call with a stable code, a message, the facts as JSON, and a hint on what to do.';

create or replace function clinical.is_service_role()
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- The current role outside of definer functions. An administrator grants membership. A setting that
  -- any session can write, such as request.jwt.claims, gives no rights.
  select pg_has_role(c.caller, 'trunkline_producer', 'usage')
    or pg_has_role(c.caller, 'trunkline_worker', 'usage')
    or pg_has_role(c.caller, 'trunkline_operator', 'usage')
    or pg_has_role(c.caller, 'trunkline_owner', 'usage')
  from (select coalesce(nullif(current_setting('role'), 'none')::name, session_user) as caller) as c
$$;
comment on function clinical.is_service_role() is 'Returns whether the caller is a service: a member of the producer, worker or operator role. Settings of the session have no effect.';

create or replace function clinical.is_operator()
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select pg_has_role(c.caller, 'trunkline_operator', 'usage') or pg_has_role(c.caller, 'trunkline_owner', 'usage')
  from (select coalesce(nullif(current_setting('role'), 'none')::name, session_user) as caller) as c
$$;
comment on function clinical.is_operator() is 'Returns whether the caller is an operator, by role membership.';

create or replace function clinical.as_uuid(p_text text)
returns uuid
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid end
$$;
comment on function clinical.as_uuid(text) is 'Parses a text as an id; null if it is not one.';

create or replace function clinical.user_id()
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- On a pooled connection, the setting is empty after the transaction that set it.
  return clinical.as_uuid(p_text => nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub');
exception
  when data_exception then
    return null;
end;
$$;
comment on function clinical.user_id() is 'Returns the signed-in user that the gateway names in the claims; null if the claims are missing, empty or invalid.';
