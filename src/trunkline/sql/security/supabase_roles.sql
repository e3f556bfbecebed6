-- Grants the producer and worker roles to the platform's service_role. Runs as the installer, only with --supabase.
-- The secret key of a project acts as service_role: it may produce and work, but not operate.

do $platform$
declare
  v_missing text[];
begin
  select array_agg(n.name)
    into v_missing
    from unnest(array['anon', 'authenticated', 'service_role']) as n (name)
    where not exists (select from pg_catalog.pg_roles as r where r.rolname = n.name);
  if v_missing is not null then
    raise exception using
      errcode = 'TL094',
      message = 'roles of the platform are missing',
      detail = json_build_object('code', 'platform_roles_missing', 'roles', v_missing)::text,
      hint = 'Leave out --supabase: this database has no roles of that platform.';
  end if;
end
$platform$;

grant trunkline_producer, trunkline_worker to service_role;
