-- Takes away what the platform's default privileges give to everybody.
-- Run as the owner, after grants.sql, only with --supabase. The grants to tenants follow it.

revoke all on schema trunkline, trunkline_internal from public, anon, authenticated, service_role;
revoke all on all tables in schema trunkline, trunkline_internal from public, anon, authenticated, service_role;
revoke all on all sequences in schema trunkline, trunkline_internal from public, anon, authenticated, service_role;
revoke all on all routines in schema trunkline, trunkline_internal from public, anon, authenticated, service_role;

-- With and without a schema: the defaults of a schema are added to those for all schemas.
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
