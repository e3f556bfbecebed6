-- Patient profiles and access to them.
-- requires: base
-- source: before 1 (existing tables)

create table if not exists clinical.user_profiles (
  id uuid primary key default gen_random_uuid(),
  full_name text,
  created_at timestamptz not null default clock_timestamp()
);
comment on table clinical.user_profiles is 'Patient profiles; the id is the tenant of every job about the patient.';

create table if not exists clinical.profile_access (
  user_id uuid not null,
  patient_id uuid not null references clinical.user_profiles (id) on delete cascade,
  granted_at timestamptz not null default clock_timestamp(),
  primary key (user_id, patient_id)
);
comment on table clinical.profile_access is 'Which signed-in user has access to which patient profile.';

create or replace function clinical.has_profile_access(p_patient uuid)
returns boolean
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from clinical.profile_access as a where a.patient_id = p_patient and a.user_id = clinical.user_id()
  )
$$;
comment on function clinical.has_profile_access(uuid) is 'Returns whether the signed-in user has access to the profile of a patient.';

-- Row security is forced, so that it holds for the owner of the tables as well.
alter table clinical.user_profiles enable row level security;
alter table clinical.user_profiles force row level security;
drop policy if exists service_only on clinical.user_profiles;
create policy service_only on clinical.user_profiles
to trunkline_owner, trunkline_producer, trunkline_operator using (true) with check (true);
alter table clinical.profile_access enable row level security;
alter table clinical.profile_access force row level security;
drop policy if exists service_only on clinical.profile_access;
create policy service_only on clinical.profile_access
to trunkline_owner, trunkline_producer, trunkline_operator using (true) with check (true);
