-- Revokes all privileges, then grants each role its own, object by object.
-- A platform's default privileges may have granted access to its roles by name; a revoke from public keeps those grants.

do $closing$
declare
  c_service constant text[] := array['trunkline_producer', 'trunkline_worker', 'trunkline_operator'];
  -- Roles that read jobs. A worker sees only the jobs it has claimed, through functions that take its attempt.
  c_jobs constant text[] := array['trunkline_producer', 'trunkline_operator', 'trunkline_reader'];
  v_all text;
  v_object record;
  v_others text;
begin
  select string_agg(o.name, ', ') into v_others
  from (
    select 'public' as name
    union all
    select quote_ident(r.rolname)
    from pg_roles as r
    where r.rolname in (
      'anon', 'authenticated', 'service_role', 'trunkline_producer', 'trunkline_worker', 'trunkline_operator', 'trunkline_reader'
    )
  ) as o;
  for v_object in
    with rights (kind, name, roles) as (
      values
        -- Producers.
        ('f', 'enqueue_job_v3', array['trunkline_producer', 'trunkline_operator']),
        ('f', 'cancel_job', array['trunkline_producer', 'trunkline_operator']),
        ('f', 'submit_upload', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'audit_logger_v3', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'client_health', c_service || array['trunkline_reader', 'authenticated', 'anon']),
        -- Called by the policies and the client functions as the caller.
        ('f', 'has_profile_access', c_service || array['authenticated']),
        ('f', 'user_id', c_service || array['authenticated']),
        ('f', 'as_uuid', c_service || array['authenticated', 'trunkline_reader']),
        ('f', 'is_service_role', c_service),
        -- Workers.
        ('f', 'claim_next_job_v3', array['trunkline_worker']),
        ('f', 'update_job_heartbeat', array['trunkline_worker']),
        ('f', 'reschedule_job', array['trunkline_worker']),
        ('f', 'complete_job', array['trunkline_worker']),
        ('f', 'fail_job', array['trunkline_worker']),
        ('f', 'finish_stage', array['trunkline_worker']),
        ('f', 'acquire_api_capacity', array['trunkline_worker']),
        ('f', 'release_api_capacity', array['trunkline_worker']),
        ('f', 'stage_file', array['trunkline_worker']),
        ('f', 'stage_records', array['trunkline_worker']),
        ('f', 'write_record', array['trunkline_worker']),
        ('f', 'log_audit_event', array['trunkline_worker', 'trunkline_operator']),
        ('f', 'keep_audit', array['trunkline_worker', 'trunkline_operator']),
        ('f', 'note_stopped_files', array['trunkline_worker', 'trunkline_operator']),
        ('f', 'configured', c_service || array['trunkline_reader']),
        -- Operators.
        ('f', 'set_configuration', array['trunkline_operator']),
        ('f', 'list_dead_letters', array['trunkline_operator', 'trunkline_reader']),
        ('f', 'requeue_dead_letter', array['trunkline_operator']),
        ('f', 'acknowledge_dead_letter', array['trunkline_operator']),
        ('f', 'run_step', array['trunkline_operator']),
        ('f', 'open_to_clients', array['trunkline_operator']),
        ('f', 'alive_workers', array['trunkline_operator']),
        -- Helpers of views, called with the rights of the reader.
        ('f', 'job_status', c_jobs),
        ('f', 'error_details', c_jobs),
        ('f', 'stage_payload', c_jobs),
        ('f', 'tag', c_jobs),
        ('r', 'job_queue', c_jobs),
        ('r', 'api_rate_limits', c_service || array['trunkline_reader']),
        ('w', 'api_rate_limits', array['trunkline_operator']),
        ('r', 'system_configuration', c_service || array['trunkline_reader']),
        ('w', 'system_configuration', array['trunkline_operator']),
        ('r', 'configuration_keys', c_service || array['trunkline_reader']),
        ('r', 'job_types', c_service || array['trunkline_reader']),
        ('w', 'job_types', array['trunkline_operator']),
        ('r', 'user_profiles', array['trunkline_producer', 'trunkline_operator']),
        ('w', 'user_profiles', array['trunkline_producer', 'trunkline_operator']),
        ('r', 'profile_access', array['trunkline_producer', 'trunkline_operator']),
        ('w', 'profile_access', array['trunkline_producer', 'trunkline_operator']),
        ('r', 'shell_files', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('r', 'clinical_records', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('r', 'audit_log', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'metrics', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'rollout_steps', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'rollout_results', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'legacy_functions', array['trunkline_operator']),
        ('w', 'legacy_functions', array['trunkline_operator']),
        ('r', 'trunkline_profile_steps', array['trunkline_operator', 'trunkline_reader'])
    ),
    objects (id, kind, name, sql) as (
      select p.oid, 'f', p.proname::text, 'function ' || p.oid::regprocedure
      from pg_proc as p
      where p.pronamespace = 'clinical'::regnamespace and p.proowner = 'trunkline_owner'::regrole
      union all
      select c.oid, 'r', c.relname::text, 'table ' || c.oid::regclass
      from pg_class as c
      where c.relnamespace = 'clinical'::regnamespace and c.relowner = 'trunkline_owner'::regrole and c.relkind in ('r', 'v')
      union all
      select c.oid, 'S', c.relname::text, 'sequence ' || c.oid::regclass
      from pg_class as c
      where c.relnamespace = 'clinical'::regnamespace and c.relowner = 'trunkline_owner'::regrole and c.relkind = 'S'
    )
    select o.sql, array_agg(g.statement) filter (where g.statement is not null) as grants
    from objects as o
    left join lateral (
      select format(
        'grant %s on %s to %I',
        case r.kind when 'f' then 'execute' when 'r' then 'select' else 'insert, update, delete' end, o.sql, n.role
      ) as statement
      from rights as r
      cross join unnest(r.roles) as n (role)
      where r.name = o.name
        and (r.kind = o.kind or r.kind = 'w' and o.kind = 'r')
        and exists (select from pg_roles as k where k.rolname = n.role)
    ) as g on true
    group by o.id, o.sql
  loop
    execute format('revoke all on %s from %s', v_object.sql, v_others);
    foreach v_all in array coalesce(v_object.grants, array[]::text[]) loop
      execute v_all;
    end loop;
  end loop;
  execute format('revoke all on schema clinical from %s', v_others);
  grant usage on schema clinical to trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
  if exists (select from pg_roles as r where r.rolname = 'authenticated') then
    grant usage on schema clinical to authenticated;
  end if;
  if exists (select from pg_roles as r where r.rolname = 'anon') then
    grant usage on schema clinical to anon;
  end if;
end
$closing$;
