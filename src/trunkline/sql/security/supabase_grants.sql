-- Revokes the privileges that the platform's defaults grant on our objects.
-- Runs as the owner, after grants.sql, only with --supabase. The grants to tenants follow it.

revoke all on schema trunkline, trunkline_internal from public, anon, authenticated, service_role;
revoke all on all tables in schema trunkline, trunkline_internal from public, anon, authenticated, service_role;
revoke all on all sequences in schema trunkline, trunkline_internal from public, anon, authenticated, service_role;
revoke all on all routines in schema trunkline, trunkline_internal from public, anon, authenticated, service_role;

-- Both with and without a schema, because PostgreSQL adds per-schema defaults to the global ones.
alter default privileges for role trunkline_owner revoke all on tables from public, anon, authenticated, service_role;
alter default privileges for role trunkline_owner revoke all on sequences from public, anon, authenticated, service_role;
alter default privileges for role trunkline_owner revoke all on routines from public, anon, authenticated, service_role;
alter default privileges for role trunkline_owner revoke all on schemas from public, anon, authenticated, service_role;
alter default privileges for role trunkline_owner in schema trunkline, trunkline_internal
  revoke all on tables from public, anon, authenticated, service_role;
alter default privileges for role trunkline_owner in schema trunkline, trunkline_internal
  revoke all on sequences from public, anon, authenticated, service_role;
alter default privileges for role trunkline_owner in schema trunkline, trunkline_internal
  revoke all on routines from public, anon, authenticated, service_role;
