delete from profile_schema.trunkline_profile_steps as s
where s.profile = %(profile)s and s.phase || '/' || s.script = any (%(scripts)s)
