insert into profile_schema.trunkline_profile_steps (profile, phase, script, sha256)
values (%(profile)s, %(phase)s, %(script)s, %(sha256)s)
on conflict (profile, phase, script) do update
set sha256 = excluded.sha256, applied_at = clock_timestamp(), applied_by = session_user
