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
        ('f', 'start_job', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'cancel_job', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'delete_job', array['trunkline_producer', 'trunkline_operator', 'authenticated']),
        ('f', 'read_job', c_jobs || array['authenticated']),
        ('r', 'jobs', c_jobs || array['authenticated']),
        ('r', 'my_tasks', c_jobs || array['authenticated']),
        ('r', 'job_artifacts', c_jobs || array['authenticated']),
        ('r', 'job_tasks', c_jobs),
        -- Called by the views with the rights of the reader; they check the user themselves.
        ('f', 'job_status', c_jobs || array['authenticated']),
        ('f', 'task_status', c_jobs || array['authenticated']),
        ('f', 'job_progress', c_jobs || array['authenticated']),
        ('f', 'public_tasks', c_jobs || array['authenticated']),
        -- Workers.
        ('f', 'claim_tasks', array['trunkline_worker']),
        ('f', 'heartbeat_task', array['trunkline_worker']),
        ('f', 'prepare_artifact', array['trunkline_worker']),
        ('f', 'complete_task', array['trunkline_worker']),
        ('f', 'fail_task', array['trunkline_worker']),
        ('f', 'order_files', array['trunkline_worker']),
        ('f', 'reclaim_stale_tasks', array['trunkline_worker', 'trunkline_operator']),
        -- Operators.
        ('f', 'retry_job', array['trunkline_operator']),
        ('f', 'run_step', array['trunkline_operator']),
        ('f', 'failed_documents', c_jobs),
        ('f', 'is_served', array['trunkline_operator', 'trunkline_reader']),
        -- The older system keeps its jobs up to date.
        ('r', 'legacy_jobs', array['trunkline_producer', 'trunkline_operator']),
        ('w', 'legacy_jobs', array['trunkline_producer']),
        ('r', 'metrics', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'wanted_workers', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'pool_decisions', array['trunkline_operator', 'trunkline_reader']),
        -- Called by the view with the rights of the reader.
        ('f', 'pool_minimum', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'rollout_steps', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'rollout_results', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'trunkline_profile_steps', array['trunkline_operator', 'trunkline_reader']),
        ('r', 'job_types', c_service || array['authenticated']),
        ('w', 'job_types', array['trunkline_operator']),
        ('r', 'documents', c_service || array['authenticated']),
        ('w', 'documents', array['trunkline_operator']),
        ('r', 'systems', c_service || array['authenticated']),
        ('r', 'artifact_types', c_service),
        ('r', 'task_types', c_service)
    ),
    objects (id, kind, name, sql) as (
      select p.oid, 'f', p.proname::text, 'function ' || p.oid::regprocedure
      from pg_proc as p
      where p.pronamespace = 'studio'::regnamespace and p.proowner = 'trunkline_owner'::regrole
      union all
      select c.oid, 'r', c.relname::text, 'table ' || c.oid::regclass
      from pg_class as c
      where c.relnamespace = 'studio'::regnamespace and c.relowner = 'trunkline_owner'::regrole and c.relkind in ('r', 'v')
      union all
      select c.oid, 'S', c.relname::text, 'sequence ' || c.oid::regclass
      from pg_class as c
      where c.relnamespace = 'studio'::regnamespace and c.relowner = 'trunkline_owner'::regrole and c.relkind = 'S'
    )
    select o.sql, array_agg(g.statement) filter (where g.statement is not null) as grants
    from objects as o
    left join lateral (
      select format(
        'grant %s on %s to %I',
        case r.kind when 'f' then 'execute' when 'r' then 'select' else 'insert, update' end, o.sql, n.role
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
  execute format('revoke all on schema studio from %s', v_others);
  grant usage on schema studio to trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
  if exists (select from pg_roles as r where r.rolname = 'authenticated') then
    grant usage on schema studio, trunkline to authenticated;
    -- Called by the views with the rights of the reader.
    grant execute on function trunkline.clock(), trunkline.tenant_scope() to authenticated;
  end if;
end
$closing$;

-- After the revokes, because a duty's function must be out of reach of roles that could replace it.
select trunkline.add_duty(
  p_duty => 'studio_decide_pools', p_function => 'studio.decide_pools', p_every => interval '15 seconds',
  p_description => 'Stores how many workers each pool of the studio wants, and records changes.'
);
