-- Revokes all privileges, then grants each role its own, object by object.
-- A platform's default privileges may have granted access to its roles by name; a revoke from public keeps those grants.

do $closing$
declare
  -- Roles that read jobs. A worker sees only what its claims return.
  c_jobs constant text[] := array['trunkline_producer', 'trunkline_operator', 'trunkline_reader'];
  c_service constant text[] := array['trunkline_producer', 'trunkline_worker', 'trunkline_operator', 'trunkline_reader'];
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
        -- Signed-in users, and applications on their behalf.
        ('f', 'create_export_job', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'create_export_batch', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'cancel_job', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'delete_export', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'count_download', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'check_storage_quota', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        -- Administrators; the function checks the user.
        ('f', 'run_cleanup', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'record_operation', array['trunkline_producer', 'trunkline_operator']),
        ('f', 'get_job_status', c_jobs || array['authenticated']),
        ('f', 'get_batch', c_jobs || array['authenticated']),
        ('f', 'batch_files', c_jobs || array['authenticated']),
        ('f', 'list_history', c_jobs || array['authenticated']),
        ('f', 'read_export', c_jobs || array['authenticated']),
        ('r', 'export_jobs', c_jobs || array['authenticated']),
        ('r', 'export_history', c_jobs || array['authenticated']),
        ('r', 'templates', c_service || array['authenticated']),
        -- Documents belong to their users, who write them through the editor.
        ('r', 'documents', c_jobs || array['authenticated']),
        ('a', 'documents', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('r', 'people', c_jobs),
        ('a', 'people', array['trunkline_operator']),
        -- Called by views and policies with the rights of the caller.
        ('f', 'sees', c_jobs || array['authenticated']),
        ('f', 'job_status', c_jobs || array['authenticated']),
        ('f', 'public_error', c_jobs || array['authenticated']),
        ('f', 'calculate_retry_delay', c_service || array['authenticated']),
        -- Workers.
        ('f', 'fetch_next_export_job', array['trunkline_worker']),
        ('f', 'export_input', array['trunkline_worker']),
        ('f', 'update_job_progress', array['trunkline_worker']),
        ('f', 'prepare_upload', array['trunkline_worker']),
        ('f', 'record_export', array['trunkline_worker']),
        ('f', 'complete_job', array['trunkline_worker']),
        ('f', 'fail_job', array['trunkline_worker']),
        ('f', 'reset_stuck_jobs', array['trunkline_worker', 'trunkline_operator']),
        ('f', 'continue_cleanup', array['trunkline_worker']),
        -- Operators.
        ('f', 'run_step', array['trunkline_operator']),
        ('f', 'is_served', array['trunkline_operator', 'trunkline_reader']),
        ('f', 'as_megabytes', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'metrics', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'settings', array['trunkline_operator', 'trunkline_reader']),
        ('w', 'settings', array['trunkline_operator']),
        ('w', 'templates', array['trunkline_operator']),
        ('r', 'cleanup_results', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'rollout_steps', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'rollout_results', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'trunkline_profile_steps', array['trunkline_operator', 'trunkline_reader'])
    ),
    objects (id, kind, name, sql) as (
      select p.oid, 'f', p.proname::text, 'function ' || p.oid::regprocedure
      from pg_proc as p
      where p.pronamespace = 'exports'::regnamespace and p.proowner = 'trunkline_owner'::regrole
      union all
      select c.oid, 'r', c.relname::text, 'table ' || c.oid::regclass
      from pg_class as c
      where c.relnamespace = 'exports'::regnamespace and c.relowner = 'trunkline_owner'::regrole and c.relkind in ('r', 'v')
      union all
      select c.oid, 'S', c.relname::text, 'sequence ' || c.oid::regclass
      from pg_class as c
      where c.relnamespace = 'exports'::regnamespace and c.relowner = 'trunkline_owner'::regrole and c.relkind = 'S'
    )
    select o.sql, array_agg(g.statement) filter (where g.statement is not null) as grants
    from objects as o
    left join lateral (
      select format(
        'grant %s on %s to %I',
        case r.kind
          when 'f' then 'execute' when 'r' then 'select' when 'w' then 'insert, update' else 'insert, update, delete'
        end,
        o.sql, n.role
      ) as statement
      from rights as r
      cross join unnest(r.roles) as n (role)
      where r.name = o.name
        and (r.kind = o.kind or r.kind in ('a', 'w') and o.kind = 'r')
        and exists (select from pg_roles as k where k.rolname = n.role)
    ) as g on true
    group by o.id, o.sql
  loop
    execute format('revoke all on %s from %s', v_object.sql, v_others);
    foreach v_all in array coalesce(v_object.grants, array[]::text[]) loop
      execute v_all;
    end loop;
  end loop;
  execute format('revoke all on schema exports from %s', v_others);
  grant usage on schema exports to trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
  if exists (select from pg_roles as r where r.rolname = 'authenticated') then
    grant usage on schema exports, trunkline to authenticated;
    -- Called by the views with the rights of the reader.
    grant execute on function trunkline.clock(), trunkline.tenant_scope() to authenticated;
  end if;
end
$closing$;

-- After the revokes, because a duty's function must be out of reach of roles that could replace it.
select trunkline.add_duty(
  p_duty => 'exports_mark_removed', p_function => 'exports.mark_removed', p_every => interval '15 seconds',
  p_description => 'Marks exports whose files are really gone.'
);
