-- From here on as the owner of the engine's objects. These tables record what was applied.

set local role trunkline_owner;
create table if not exists profile_schema.trunkline_profile_steps (
  profile text not null,
  phase text not null,
  script text not null,
  sha256 text not null,
  applied_at timestamptz not null default clock_timestamp(),
  applied_by text not null default session_user,
  primary key (profile, phase, script)
);
comment on table profile_schema.trunkline_profile_steps is 'Which scripts of which profile were applied here, with their checksums.';
alter table profile_schema.trunkline_profile_steps enable row level security;
alter table profile_schema.trunkline_profile_steps force row level security;
drop policy if exists service_only on profile_schema.trunkline_profile_steps;
create policy service_only on profile_schema.trunkline_profile_steps
to trunkline_owner, trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader using (true) with check (true);
grant usage on schema profile_schema to trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader;
grant select on profile_schema.trunkline_profile_steps to trunkline_operator, trunkline_reader;
