-- Creates the five roles and the two schemas. Runs first, as the installer, at every install and upgrade.
-- The installer needs CREATEROLE and CREATE on the database, nothing more. This runs before the
-- installation lock, because that lock is on the schema, and roles belong to the whole server. So another
-- installation may create the same roles and schemas at the same moment. Each step checks, acts, and
-- checks again if it lost the race.

do $server$
begin
  if current_setting('server_version_num')::integer < 150000 then
    raise exception using
      errcode = 'TL013',
      message = 'server is older than PostgreSQL 15',
      detail = json_build_object('code', 'server_too_old', 'server_version', current_setting('server_version'), 'oldest', 15)::text,
      hint = 'Upgrade the server to PostgreSQL 15 or newer.';
  end if;
end
$server$;

do $roles$
declare
  c_attempts constant integer := 5;
  v_role text;
  v_flaws text[];
begin
  foreach v_role in array array['trunkline_owner', 'trunkline_producer', 'trunkline_worker', 'trunkline_operator', 'trunkline_reader'] loop
    for v_attempt in 1 .. c_attempts loop
      exit when exists (select from pg_catalog.pg_roles as r where r.rolname = v_role);
      begin
        execute format('create role %I nologin nosuperuser nocreatedb nocreaterole noreplication nobypassrls', v_role);
      exception
        when duplicate_object or unique_violation then
          null;
        when internal_error then
          -- "tuple concurrently updated", which has no specific SQLSTATE
          if v_attempt = c_attempts then
            raise;
          end if;
        when insufficient_privilege then
          raise exception using
            errcode = 'TL090',
            message = 'installer lacks a right that the installation needs',
            detail = json_build_object(
              'code', 'installer_lacks_right', 'installer', current_user, 'right', 'createrole', 'role', v_role
            )::text,
            hint = format('Ask an administrator to run: alter role %I createrole;', current_user);
      end;
    end loop;

    select array_remove(array[
        case when r.rolsuper then 'superuser' end,
        case when r.rolbypassrls then 'bypassrls' end,
        case when r.rolcanlogin then 'login' end,
        case when r.rolcreatedb then 'createdb' end,
        case when r.rolcreaterole then 'createrole' end,
        case when r.rolreplication then 'replication' end
      ], null)
      into v_flaws
      from pg_catalog.pg_roles as r
      where r.rolname = v_role;
    if v_flaws <> '{}' then
      raise exception using
        errcode = 'TL091',
        message = 'role may do more than it should',
        detail = json_build_object('code', 'unsafe_role', 'role', v_role, 'attributes', v_flaws)::text,
        hint = format('Such a role bypasses row-level security or grants. Ask an administrator to run: alter role %I %s;',
          v_role, 'no' || array_to_string(v_flaws, ' no'));
    end if;
  end loop;
end
$roles$;

do $membership$
declare
  c_attempts constant integer := 5;
  c_sixteen constant boolean := current_setting('server_version_num')::integer >= 160000;
  c_grant constant text := format('grant trunkline_owner to %I', current_user)
    || case when c_sixteen then ' with inherit true, set true' else '' end;
begin
  for v_attempt in 1 .. c_attempts loop
    exit when case
      when c_sixteen then
        pg_has_role(current_user, 'trunkline_owner', 'set') and pg_has_role(current_user, 'trunkline_owner', 'usage')
      else
        -- before PostgreSQL 16, inheritance is an attribute of the installer, which no grant changes
        pg_has_role(current_user, 'trunkline_owner', 'member')
    end;
    begin
      execute c_grant;
    exception
      when duplicate_object or unique_violation then
        null;
      when internal_error then
        if v_attempt = c_attempts then
          raise;
        end if;
      when insufficient_privilege then
        -- From PostgreSQL 16 on, CREATEROLE alone gives no rights over a role that another role created.
        raise exception using
          errcode = 'TL090',
          message = 'installer lacks a right that the installation needs',
          detail = json_build_object(
            'code', 'installer_lacks_right', 'installer', current_user, 'right', 'membership', 'role', 'trunkline_owner'
          )::text,
          hint = format('Ask an administrator to run: %s;', c_grant);
    end;
  end loop;
end
$membership$;

do $schemas$
declare
  v_schema text;
  v_owner text;
begin
  foreach v_schema in array array['trunkline', 'trunkline_internal'] loop
    select pg_get_userbyid(n.nspowner) into v_owner from pg_catalog.pg_namespace as n where n.nspname = v_schema;
    if not found then
      begin
        execute format('create schema %I authorization trunkline_owner', v_schema);
        v_owner := 'trunkline_owner';
      exception
        when duplicate_schema or unique_violation then
          select pg_get_userbyid(n.nspowner) into v_owner from pg_catalog.pg_namespace as n where n.nspname = v_schema;
        when insufficient_privilege then
          raise exception using
            errcode = 'TL090',
            message = 'installer lacks a right that the installation needs',
            detail = json_build_object(
              'code', 'installer_lacks_right', 'installer', current_user, 'right', 'create', 'database', current_database()
            )::text,
            hint = format('Ask an administrator to run: grant create on database %I to %I;', current_database(), current_user);
      end;
    end if;
    if v_owner <> 'trunkline_owner' then
      raise exception using
        errcode = 'TL092',
        message = 'schema belongs to another role',
        detail = json_build_object('code', 'foreign_schema', 'schema', v_schema, 'owner', v_owner)::text,
        hint = format('Rename it, or if it is meant for this installation: alter schema %I owner to trunkline_owner;', v_schema);
    end if;
  end loop;
end
$schemas$;
