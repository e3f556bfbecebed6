-- Revokes all privileges on every object of this profile from public and from a platform's roles.
-- A platform's default privileges may have granted them access; a revoke from public keeps those grants.

do $closing$
declare
  v_object text;
  v_others text;
begin
  select string_agg(o.name, ', ') into v_others
  from (
    select 'public' as name
    union all
    select quote_ident(r.rolname) from pg_roles as r where r.rolname in ('anon', 'authenticated', 'service_role')
  ) as o;
  for v_object in
    select 'function ' || p.oid::regprocedure
    from pg_proc as p
    where p.pronamespace = 'executor'::regnamespace
      and p.proowner = 'trunkline_owner'::regrole
      and (
        p.proname like 'executor\_%'
        or p.proname in (
          'enqueue_job', 'process_orchestrator_jobs', 'reclaim_stale_jobs', 'requeue_dead_jobs', 'run_wake_ups',
          'set_job_type', 'update_job_heartbeat', 'wake_execution_engine'
        )
      )
    union all
    select case when c.relkind = 'S' then 'sequence ' else 'table ' end || c.oid::regclass
    from pg_class as c
    where c.relnamespace = 'executor'::regnamespace
      and c.relowner = 'trunkline_owner'::regrole
      and c.relkind in ('r', 'v', 'S')
      and (c.relname like 'executor\_%' or c.relname = 'trunkline_profile_steps')
  loop
    execute format('revoke all on %s from %s', v_object, v_others);
  end loop;
end
$closing$;
